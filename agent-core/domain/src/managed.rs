//! Which pods are ours (K06).

use serde::{Deserialize, Serialize};

/// The annotation that opts a pod out ("false"), or in ("true") under [`Mode::OptIn`].
pub const ANNOTATION: &str = "aether.io/managed";
/// The namespace that is always ignored.
pub const KUBE_SYSTEM: &str = "kube-system";

/// Which pods are managed when nothing is said (`managed` in the entry).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every pod but those whose annotation says "false".
    #[default]
    OptOut,
    /// Only pods whose annotation says "true".
    OptIn,
}

/// Whether a pod is managed, from its annotation's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Managed {
    /// Ours.
    Yes,
    /// Recorded, but left alone: its annotation says so.
    OptedOut,
    /// Recorded, but left alone: a policy module said so.
    Ignored,
}

/// Decides by the entry's mode and the value of the pod's annotation.
pub fn decide(mode: Mode, annotation: Option<&str>) -> Managed {
    let managed = match mode {
        Mode::OptOut => annotation != Some("false"),
        Mode::OptIn => annotation == Some("true"),
    };
    if managed { Managed::Yes } else { Managed::OptedOut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k06_the_annotation_decides_by_mode() {
        for (mode, value, managed) in [
            (Mode::OptOut, None, Managed::Yes),
            (Mode::OptOut, Some("true"), Managed::Yes),
            (Mode::OptOut, Some("false"), Managed::OptedOut),
            (Mode::OptOut, Some("FALSE"), Managed::Yes),
            (Mode::OptIn, None, Managed::OptedOut),
            (Mode::OptIn, Some("true"), Managed::Yes),
            (Mode::OptIn, Some("1"), Managed::OptedOut),
        ] {
            assert_eq!(decide(mode, value), managed, "{mode:?} {value:?}");
        }
    }
}
