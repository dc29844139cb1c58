//! What a module wants done, and the check that stands before it twice: when it is staged and when it is performed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::grant::Grant;

/// Something that the host does for a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Replace a list, if it still has the digest that was read.
    ReplaceList {
        /// The file's name.
        name: String,
        /// The digest of what the module read.
        expect: String,
        /// The list with our entry in it.
        bytes: Vec<u8>,
    },
    /// Write, rewrite or remove the list that is derived from a single plugin's configuration (I06).
    DeriveList {
        /// The configuration's name.
        conf: String,
        /// The digest of what the module read.
        expect: String,
    },
    /// Put the plugin's binary back, towards the wanted hash (C10).
    RestorePlugin,
    /// Remove a taint (N02).
    RemoveTaint {
        /// Its key.
        key: String,
        /// Its effect.
        effect: TaintEffect,
    },
    /// Write the observed upstreams out.
    FlushUpstreams,
    /// Stop remembering upstreams.
    ForgetUpstreams {
        /// Their names.
        names: Vec<String>,
    },
}

impl Action {
    /// The action's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReplaceList { .. } => "replace-list",
            Self::DeriveList { .. } => "derive-list",
            Self::RestorePlugin => "restore-plugin",
            Self::RemoveTaint { .. } => "remove-taint",
            Self::FlushUpstreams => "flush-upstreams",
            Self::ForgetUpstreams { .. } => "forget-upstreams",
        }
    }

    /// Whether the grant covers it; the error names what is missing.
    pub fn covered(&self, grant: &Grant) -> Result<(), String> {
        let missing = |covered: bool, text: String| if covered { Ok(()) } else { Err(text) };
        match self {
            Self::ReplaceList { name, .. } => missing(
                grant.conflist.edit.iter().any(|glob| glob.matches(name)),
                format!("grant.conflist.edit does not cover {name}"),
            ),
            Self::DeriveList { .. } => {
                missing(grant.conflist.derive, "grant.conflist.derive is not set".into())
            }
            Self::RestorePlugin => {
                missing(grant.conflist.restore_plugin, "grant.conflist.restore-plugin is not set".into())
            }
            Self::RemoveTaint { key, .. } => missing(
                grant.node.remove_taints.contains(key),
                format!("grant.node.remove-taints does not hold {key}"),
            ),
            Self::FlushUpstreams => missing(grant.upstreams.flush, "grant.upstreams.flush is not set".into()),
            Self::ForgetUpstreams { .. } => {
                missing(grant.upstreams.forget, "grant.upstreams.forget is not set".into())
            }
        }
    }
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Rather no new pods.
    PreferNoSchedule,
    /// No pods.
    NoExecute,
}

/// Who owns the node, in one word that everybody reads: 0 on a standby, else the takeover's generation.
#[derive(Debug, Clone, Default)]
pub struct Ownership(Arc<AtomicU64>);

impl Ownership {
    /// The generation, while this agent owns the node.
    pub fn generation(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|generation| *generation != 0)
    }

    pub(crate) fn take(&self, generation: u64) {
        self.0.store(generation.max(1), Ordering::Release);
    }

    pub(crate) fn lose(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// An action that waits to be performed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Staged {
    pub(crate) ticket: u64,
    pub(crate) action: Action,
    pub(crate) generation: u64,
}

/// The right to perform one action, to be asked once more at the last moment: after waiting for a lock, for example.
#[derive(Debug, Clone)]
pub struct Permit {
    pub(crate) ownership: Ownership,
    pub(crate) generation: u64,
}

impl Permit {
    /// Whether the agent still owns the node as it did when the action was staged.
    pub fn stands(&self) -> bool {
        self.ownership.generation() == Some(self.generation)
    }
}

/// What came of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done; the text may say what changed.
    Done(String),
    /// What the module read is no longer so.
    Conflict(String),
    /// It was tried and failed.
    Failed(String),
    /// It was not tried: ownership or grant went, or the module is only audited.
    Dropped(String),
}

impl Outcome {
    /// The outcome's stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Conflict(_) => "conflict",
            Self::Failed(_) => "failed",
            Self::Dropped(_) => "dropped",
        }
    }

    /// What is said about it.
    pub fn detail(&self) -> &str {
        match self {
            Self::Done(text) | Self::Conflict(text) | Self::Failed(text) | Self::Dropped(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m03_an_action_outside_the_grant_is_named() {
        let grant: Grant = toml::from_str(
            "conflist = { edit = [\"10-*\"], derive = true }\nnode = { remove-taints = [\"k\"] }\nupstreams = { flush = true }",
        )
        .unwrap();
        let replace =
            |name: &str| Action::ReplaceList { name: name.into(), expect: String::new(), bytes: vec![] };
        let taint = |key: &str| Action::RemoveTaint { key: key.into(), effect: TaintEffect::NoSchedule };
        for (action, covered) in [
            (replace("10-a.conflist"), true),
            (replace("11-a.conflist"), false),
            (Action::DeriveList { conf: "x".into(), expect: String::new() }, true),
            (Action::RestorePlugin, false),
            (taint("k"), true),
            (taint("node.kubernetes.io/not-ready"), false),
            (Action::FlushUpstreams, true),
            (Action::ForgetUpstreams { names: vec![] }, false),
        ] {
            assert_eq!(action.covered(&grant).is_ok(), covered, "{action:?}");
            if !covered {
                assert!(action.covered(&grant).unwrap_err().contains("grant."), "{action:?}");
            }
        }
    }

    #[test]
    fn m03_a_permit_ends_with_the_ownership_under_which_it_was_given() {
        let ownership = Ownership::default();
        ownership.take(1);
        let permit = Permit { ownership: ownership.clone(), generation: 1 };
        assert!(permit.stands());
        ownership.lose();
        assert!(!permit.stands());
        ownership.take(2);
        assert!(!permit.stands());
    }
}
