//! Errors to the wire, in one place. The plugin makes CNI codes of these (`AddError`'s text reaches the pod's events).

use aether_domain::pods::{AddError, ServiceError};
use aether_domain::text::error_chain;
use tonic::{Code, Status};

use crate::convert::Invalid;

/// Why a call was not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotBegun {
    #[error("{max} ADDs are in flight, and no more are taken; try again later")]
    TooManyAdds { max: usize },
    #[error("{max} calls are in flight, and no more are taken; try again later")]
    TooManyCalls { max: usize },
}

impl From<NotBegun> for Status {
    fn from(error: NotBegun) -> Self {
        let code = match error {
            NotBegun::TooManyAdds { .. } | NotBegun::TooManyCalls { .. } => Code::ResourceExhausted,
        };
        Self::new(code, error.to_string())
    }
}

impl From<Invalid> for Status {
    fn from(error: Invalid) -> Self {
        Self::new(Code::InvalidArgument, error_chain(&error))
    }
}

pub(crate) fn of_add(error: &AddError) -> Status {
    let code = match error {
        AddError::NotServing(_) => Code::Unavailable,
        AddError::Refused(aether_domain::pods::Refusal::OtherBoot { .. }) | AddError::TooLarge { .. } => {
            Code::InvalidArgument
        }
        AddError::Refused(_) => Code::FailedPrecondition,
        AddError::Denied { .. } => Code::PermissionDenied,
        // The plugin does not ask again itself, and answers with CNI's "try again later".
        AddError::Postponed { .. } => Code::ResourceExhausted,
        AddError::CallerGone { .. } => Code::Cancelled,
        AddError::Storage { .. } => Code::Internal,
    };
    Status::new(code, error_chain(error))
}

pub(crate) fn of_service(error: &ServiceError) -> Status {
    let code = match error {
        ServiceError::NotServing(_) => Code::Unavailable,
        ServiceError::Storage { .. } => Code::Internal,
    };
    Status::new(code, error_chain(error))
}

/// The task that did the work panicked.
pub(crate) fn broken() -> Status {
    Status::new(Code::Internal, "the agent's work on this call broke off; its log says why")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the plugin makes of each code stands in its own tests: 101, and 11 for "try again later".
    #[test]
    fn m07_a_denial_and_one_for_now_have_codes_of_their_own_and_keep_the_reason() {
        let said = || ("team".to_owned(), "prod/web".to_owned(), "say which team".to_owned());
        let (module, pod, message) = said();
        let denied = of_add(&AddError::Denied { module, pod, message });
        let (module, pod, message) = said();
        let postponed = of_add(&AddError::Postponed { module, pod, message });
        assert_eq!((denied.code(), postponed.code()), (Code::PermissionDenied, Code::ResourceExhausted));
        for status in [denied, postponed] {
            assert!(status.message().contains("pod prod/web") && status.message().contains("say which team"));
        }
    }
}
