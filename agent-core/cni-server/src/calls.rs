//! What is said of each call: one log line, joined to the plugin's by the request id (K14), and one note to whoever
//! counts.

use std::time::Duration;

use tonic::{Code, Status};

/// A call's kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// ADD
    Add,
    /// DEL
    Del,
    /// CHECK
    Check,
    /// GC
    Gc,
    /// STATUS
    Status,
}

impl Command {
    /// The CNI command's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Gc => "GC",
            Self::Status => "STATUS",
        }
    }
}

/// A call that was answered, or whose caller left before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The command.
    pub command: Command,
    /// The gRPC status code's name, `OK` or another.
    pub code: &'static str,
    /// From the call's arrival to its end.
    pub took: Duration,
}

/// Counts calls.
pub trait Calls: Send + Sync + 'static {
    /// A call came to its end.
    fn answered(&self, call: &Answered);
    /// A connection was refused because its peer is not root.
    fn peer_refused(&self);
}

/// Nobody counts.
impl Calls for () {
    fn answered(&self, _: &Answered) {}
    fn peer_refused(&self) {}
}

/// Who and what a call is about, for its log line.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) request_id: String,
    pub(crate) key: String,
    pub(crate) pod: String,
}

/// The call's log line. An error is a warning, and so is heard at the default level; STATUS is asked every few seconds.
pub(crate) fn log(command: Command, about: &About, took: Duration, result: Result<&str, &Status>) {
    let ms = took.as_secs_f64() * 1000.0;
    let About { request_id, key, pod } = about;
    let command_name = command.name();
    match result {
        Ok(outcome) if command == Command::Status => {
            tracing::debug!(request_id, command = command_name, outcome, ms, "answered");
        }
        Ok(outcome) => tracing::info!(request_id, command = command_name, key, pod, outcome, ms, "answered"),
        Err(status) => {
            let (outcome, error) = (code_name(status.code()), status.message());
            tracing::warn!(request_id, command = command_name, key, pod, outcome, error, ms, "not done");
        }
    }
}

/// The name of a status code, as gRPC's documents write it.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
