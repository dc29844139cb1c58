//! What follows from the agent's answer, or from its absence. No I/O.

use std::path::Path;
use std::time::Duration;

use aether_api::cni::{CheckResponse, Known};
use tonic::Code;

use crate::failure::{Failure, code};

/// How an attempt to ask the agent ended without the answer that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Nobody listens.
    #[error("cannot connect: {0}")]
    Away(String),
    /// Somebody listens who is not root (O04).
    #[error("the socket is served by uid {0}, and the agent runs as root")]
    Foreign(u32),
    /// The connection ended before an answer: reset, GOAWAY, end of stream.
    #[error("the connection ended without an answer: {0}")]
    Lost(String),
    /// No answer in time.
    #[error("no answer in time")]
    TimedOut,
    /// The agent answered with an error.
    #[error("the agent answered {code:?}: {message}")]
    Refused {
        /// Its status.
        code: Code,
        /// Its reason.
        message: String,
    },
}

/// Whether the same call is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// After a short pause, while there is time.
    Yes,
    /// No.
    No,
}

impl Trouble {
    /// What another agent, or the same one later, may not meet: nobody there, not serving yet, gone in the middle. K05
    /// makes it safe to ask again.
    pub fn passes(&self) -> Again {
        match self {
            Self::Away(_) | Self::Foreign(_) | Self::Lost(_) => Again::Yes,
            // A time-out is that of the whole call.
            Self::TimedOut => Again::No,
            Self::Refused { code, .. } => match code {
                Code::Unavailable | Code::Cancelled | Code::Aborted | Code::DeadlineExceeded => Again::Yes,
                _ => Again::No,
            },
        }
    }

    /// Whether it is the moment of a hand-over, for calls that do not wait for an absent agent.
    pub fn hand_over(&self) -> Again {
        if matches!(self, Self::Lost(_)) { Again::Yes } else { Again::No }
    }

    fn unimplemented(&self) -> bool {
        matches!(self, Self::Refused { code: Code::Unimplemented, .. })
    }
}

/// The call that met a trouble, for its message.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The agent's socket.
    pub socket: &'a Path,
    /// How long it took.
    pub waited: Duration,
}

impl Call<'_> {
    fn failure(&self, code: u32, message: &str, trouble: &Trouble, remedy: &str) -> Failure {
        let details = format!(
            "{} after {:.1} s: {trouble}; {remedy}",
            self.socket.display(),
            self.waited.as_secs_f64()
        );
        Failure::new(code, message, details)
    }
}

const SEE_AGENT: &str = "is aether-agent running and Ready on this node?";

/// The error of an ADD that is not made again (K04, K16).
pub fn add(call: Call<'_>, trouble: &Trouble) -> Failure {
    if trouble.passes() == Again::Yes {
        return call.failure(code::TRY_AGAIN, "the agent is away, the pod must wait", trouble, SEE_AGENT);
    }
    match trouble {
        Trouble::Refused { code: status, message } => match status {
            Code::ResourceExhausted => {
                call.failure(code::TRY_AGAIN, "the pod must wait", trouble, "the kubelet tries again")
            }
            Code::InvalidArgument => {
                call.failure(code::INVALID_CONFIG, "the agent cannot use the request", trouble, SEE_VERSIONS)
            }
            // The reason is the policy's, for the person who made the pod (M07).
            Code::PermissionDenied => Failure::new(code::POLICY_DENIED, "denied by policy", message.clone()),
            _ => {
                call.failure(code::AGENT_REFUSED, "the agent refused the pod", trouble, "see the agent's log")
            }
        },
        _ => {
            call.failure(code::TRY_AGAIN, "the agent does not answer, the pod must wait", trouble, SEE_AGENT)
        }
    }
}

const SEE_VERSIONS: &str = "are plugin and agent of neighbouring releases?";

/// Whether a record of the attachment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// There is one, or it could not be told.
    Possible,
    /// There is none.
    Absent,
}

/// What a DEL does that could not tell the agent (K07).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It leaves a tombstone.
    Tombstone,
    /// There is nothing to delete: nobody listens and no record stands.
    Nothing,
}

/// Decides it. An agent that listens may be writing the record at this moment, so only where none does can there be
/// nothing to delete.
pub fn del(trouble: &Trouble, record: Record) -> Left {
    match (trouble, record) {
        (Trouble::Away(_) | Trouble::Foreign(_), Record::Absent) => Left::Nothing,
        _ => Left::Tombstone,
    }
}

/// The outcome of a CHECK whose namespace and interface are there (K09, K15).
pub fn check(call: Call<'_>, answer: Result<CheckResponse, Trouble>) -> Result<&'static str, Failure> {
    match answer {
        Ok(response) => match response.known() {
            Known::Managed => Ok("as-recorded"),
            Known::Unmanaged => Ok("unmanaged"),
            Known::BeforeInstall => Ok("before-install"),
            Known::Missing | Known::Unspecified => Err(Failure::new(
                code::CHECK_FAILED,
                "the pod is not known",
                format!(
                    "the agent on {} has no record of it: it was deleted, or started while the list had no entry of ours; if it runs, restart it",
                    call.socket.display()
                ),
            )),
        },
        Err(trouble) if trouble.unimplemented() => Ok("agent-cannot-check"),
        Err(trouble) => Err(match &trouble {
            Trouble::Refused { code: status, .. } if trouble.passes() == Again::No => {
                let code = match status {
                    Code::InvalidArgument => code::INVALID_CONFIG,
                    Code::ResourceExhausted => code::TRY_AGAIN,
                    _ => code::AGENT_REFUSED,
                };
                call.failure(code, "the agent cannot check the pod", &trouble, "see the agent's log")
            }
            _ => call.failure(
                code::TRY_AGAIN,
                "the agent is away, the pod cannot be checked",
                &trouble,
                SEE_AGENT,
            ),
        }),
    }
}

/// The outcome of a GC: without an agent, or with one that knows no GC, nothing is deleted (K11, K15).
pub fn gc(call: Call<'_>, trouble: &Trouble) -> Result<&'static str, Failure> {
    match trouble {
        Trouble::Refused { code: status, .. } if trouble.passes() == Again::No => match status {
            Code::Unimplemented => Ok("agent-cannot-gc"),
            Code::InvalidArgument => Err(call.failure(
                code::INVALID_CONFIG,
                "the agent cannot use the request",
                trouble,
                SEE_VERSIONS,
            )),
            Code::ResourceExhausted => {
                Err(call.failure(code::TRY_AGAIN, "the agent is full", trouble, "run the GC again later"))
            }
            _ => Err(call.failure(
                code::AGENT_REFUSED,
                "the agent could not delete",
                trouble,
                "see the agent's log",
            )),
        },
        _ => Ok("agent-away"),
    }
}

/// The outcome of a STATUS that was not answered OK (K10, K15).
pub fn status(call: Call<'_>, trouble: &Trouble) -> Result<&'static str, Failure> {
    if trouble.unimplemented() {
        return Ok("agent-cannot-say");
    }
    Err(call.failure(code::NOT_AVAILABLE, "an ADD could not be served", trouble, SEE_AGENT))
}

#[cfg(test)]
mod tests;
