//! What modules decided about the list and the plugin, done by the list keeper.

use std::path::PathBuf;

use aether_domain::chain::Healthy;
use aether_list_keeper::Keeper;
use aether_module_host::action::{Action, Outcome, Permit};

/// Changes the node's list and plugin.
#[derive(Debug, Clone)]
pub(crate) struct Hands {
    keeper: Keeper,
    plugin_source: PathBuf,
}

impl Hands {
    pub(crate) fn new(keeper: Keeper, plugin_source: PathBuf) -> Self {
        Self { keeper, plugin_source }
    }

    /// Does one of the actions on the list or the plugin. The permit is asked again under the lock, at the last moment.
    /// Blocks.
    pub(crate) fn perform(&self, action: &Action, permit: &Permit) -> Outcome {
        let still = || permit.stands();
        outcome(match action {
            Action::ReplaceList { name, expect, bytes } => {
                self.keeper.replace_list(name, expect, bytes, still)
            }
            Action::DeriveList { conf, expect } => self.keeper.derive_list(conf, expect, still),
            Action::RestorePlugin => self.keeper.restore_plugin(&self.plugin_source, still),
            Action::RemoveTaint { .. } | Action::FlushUpstreams | Action::ForgetUpstreams { .. } => {
                return Outcome::Failed(format!("{} is nothing that is done to a list", action.name()));
            }
        })
    }

    /// Writes down what was observed healthy, while `still` says that this agent owns the node (C03). Blocks.
    pub(crate) fn remember(&self, healthy: &Healthy, still: impl Fn() -> bool) {
        let kept = self.keeper.remember(healthy, still);
        if !matches!(kept, aether_list_keeper::Outcome::Done(_)) {
            tracing::warn!(
                outcome = kept.name(),
                detail = kept.detail(),
                "what was observed healthy is not written down; a node whose net.d is wiped now is repaired by this process only"
            );
        }
    }
}

fn outcome(outcome: aether_list_keeper::Outcome) -> Outcome {
    use aether_list_keeper::Outcome as Kept;
    match outcome {
        Kept::Done(text) => Outcome::Done(text),
        Kept::Conflict(text) => Outcome::Conflict(text),
        Kept::Failed(text) | Kept::Refused(text) => Outcome::Failed(text),
    }
}
