//! How the program ends: five numbers, which `--help` lists.

/// What the exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or chained.
    Done,
    /// Something could not be read or written.
    Failed,
    /// The command line is wrong. (clap ends the program with the same number.)
    Usage,
    /// The node is not chained, or there is no list to take yet.
    NotChained,
    /// A rule forbids it; trying again does not help.
    Refused,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotChained => 3,
            Self::Refused => 4,
        }
    }
}
