//! What came of an operation.

/// What came of an operation, with a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is so now; the text says what changed, if anything.
    Done(String),
    /// What was inspected is no longer so, or the right to change it went: look again.
    Conflict(String),
    /// It was tried and could not be done: what, on what, why.
    Failed(String),
    /// A rule forbids it; trying again does not help.
    Refused(String),
}

impl Outcome {
    /// The outcome's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Conflict(_) => "conflict",
            Self::Failed(_) => "failed",
            Self::Refused(_) => "refused",
        }
    }

    /// What is said about it.
    pub fn detail(&self) -> &str {
        match self {
            Self::Done(text) | Self::Conflict(text) | Self::Failed(text) | Self::Refused(text) => text,
        }
    }
}
