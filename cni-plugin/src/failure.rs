//! What can go wrong, as the runtime will read it.

/// The error codes of the CNI specification that we use, and our own.
pub mod code {
    /// The list asks for a version that we do not know.
    pub const INCOMPATIBLE_VERSION: u32 = 1;
    /// Environment variables are missing or unusable; the text names them.
    pub const INVALID_ENVIRONMENT: u32 = 4;
    /// Reading or writing failed.
    pub const IO: u32 = 5;
    /// Standard input holds no configuration.
    pub const DECODE: u32 = 6;
    /// The configuration is one that we cannot use.
    pub const INVALID_CONFIG: u32 = 7;
    /// The agent is away or full: the same call may succeed later.
    pub const TRY_AGAIN: u32 = 11;
    /// An ADD could not be served now (STATUS).
    pub const NOT_AVAILABLE: u32 = 50;

    /// Ours: the agent refused, or could not keep the record.
    pub const AGENT_REFUSED: u32 = 100;
    /// Ours: a policy denied the pod.
    pub const POLICY_DENIED: u32 = 101;
    /// Ours: the pod is not as it was made (CHECK).
    pub const CHECK_FAILED: u32 = 102;
    /// Ours: a fault of this program.
    pub const INTERNAL: u32 = 103;
}

/// An error of one call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {details}")]
pub struct Failure {
    /// One of [`code`].
    pub code: u32,
    /// What was tried, in a few words.
    pub message: String,
    /// On what, why it failed and what to do.
    pub details: String,
}

impl Failure {
    /// A failure with `code`.
    pub fn new(code: u32, message: impl Into<String>, details: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: details.into() }
    }
}
