//! What the module staged, performed, and what came of it told (M03).

use std::time::Duration;

use super::{Inner, Slot, push};
use crate::action::{Action, Outcome, Permit, Staged};
use crate::bindings::exports::aether::behaviour::lifecycle::Event;
use crate::lifecycle::State;
use crate::manifest::Mode;
use crate::splice;
use crate::version::SharedVersion;

/// After how long a behaviour hears what came of its action, where nothing else happens: it is told at once with
/// whatever does, and a module that asks for the same again each time does so at this pace.
const OUTCOME: Duration = Duration::from_millis(50);
/// The longest that it is after several actions in a row that were not done: each doubles it, so that a disk which is full,
/// or a grant that is missing, keeps no processor busy.
const OUTCOME_MAX: Duration = Duration::from_secs(10);

impl Slot {
    /// Performs an action, after looking once more whether it may be (M03).
    pub(super) fn perform(&self, staged: &Staged, version: Option<&SharedVersion>) -> Outcome {
        let permit = Permit { ownership: self.surroundings.ownership.clone(), generation: staged.generation };
        let Some(version) = version else {
            return Outcome::Dropped("the module is gone".to_owned());
        };
        if !permit.stands() {
            return Outcome::Dropped("the agent no longer owns the node as it did".to_owned());
        }
        if let Err(missing) = staged.action.covered(&version.manifest.grant) {
            return Outcome::Dropped(missing);
        }
        if let Action::ReplaceList { name, expect, bytes } = &staged.action
            && let Err(refused) = splice::check(&self.surroundings.ports.conflist(), name, expect, bytes)
        {
            return Outcome::Conflict(refused.to_string());
        }
        if version.manifest.mode == Mode::Audit {
            return Outcome::Dropped("the module is only audited".to_owned());
        }
        self.surroundings.ports.perform(&staged.action, &permit)
    }

    pub(super) fn report(&self, inner: &mut Inner, staged: &Staged, outcome: &Outcome) {
        let action = staged.action.name();
        self.stats.action(action, outcome);
        let (module, what, detail) = (&self.name, outcome.name(), outcome.detail());
        if matches!(outcome, Outcome::Done(_)) {
            tracing::info!(%module, action, detail, "a module's action is done");
            (inner.undone, inner.said) = (0, None);
        } else {
            // Said once, not at each attempt.
            let now = Some((action, outcome.clone()));
            if inner.said != now {
                tracing::warn!(%module, action, outcome = what, detail, "a module's action is not done");
                inner.said = now;
            }
            inner.undone = inner.undone.saturating_add(1);
        }
        if inner.machine.state() == State::Enabled {
            let event = Event {
                kind: "outcome".to_owned(),
                about: what.to_owned(),
                detail: detail.to_owned(),
                ticket: Some(staged.ticket),
            };
            push(&mut inner.events, event);
            let soon = self.shared.now().saturating_add(pace(inner.undone));
            inner.due = Some(inner.due.map_or(soon, |due| due.min(soon)));
        }
    }
}

/// After how long a module hears what came of its action, after so many in a row that were not done.
fn pace(undone: u32) -> Duration {
    let doublings = undone.saturating_sub(1).min(16);
    OUTCOME.saturating_mul(1 << doublings).min(OUTCOME_MAX)
}
