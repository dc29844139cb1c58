//! What was last observed healthy, and what is to be put back by it.

use std::sync::Arc;

use aether_conflist::chain::{Inspection, Want};
use aether_conflist::own::OwnEntry;
use aether_conflist::want::{self, Resolved, WantedFile};
use aether_domain::chain::{Healthy, State};

/// What was observed healthy last: by this process, or by an earlier one that wrote it down.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    last: Option<Healthy>,
}

impl Memory {
    /// The memory of an earlier process.
    pub(crate) fn of(healthy: Option<Healthy>) -> Self {
        Self { last: healthy }
    }

    /// What is remembered.
    pub(crate) fn healthy(&self) -> Option<Healthy> {
        self.last.clone()
    }

    /// The wanted entry by this file.
    pub(crate) fn resolve(&self, file: &WantedFile) -> Resolved {
        want::resolve(file, self.last.as_ref())
    }

    /// Remembers what `inspection` found healthy at `now` (seconds since 1970); an uninstall ends the memory.
    pub(crate) fn learn(&mut self, resolved: &Resolved, inspection: &Inspection, now: u64) {
        let seen = match (&inspection.state, &resolved.want) {
            (State::Uninstalled, _) => {
                self.last = None;
                return;
            }
            (State::Chained, Want::Entry(entry)) => Some(entry.clone()),
            (State::Chained, Want::Newer) => match &inspection.list {
                Some(Ok(list)) => list.ours().next().and_then(|entry| OwnEntry::parse(list.text(entry)).ok()),
                _ => None,
            },
            _ => None,
        };
        // libcni takes what serde_json does not; such an entry cannot be kept, and an older one is worse than none.
        let entry = seen.and_then(|entry| serde_json::from_slice(entry.text()).ok());
        if let Some(entry) = entry {
            let healthy =
                Healthy::new(entry, resolved.plugin_sha256.clone(), resolved.install_id.clone(), now);
            if !self.last.as_ref().is_some_and(|last| last.says_the_same(&healthy)) {
                self.last = Some(healthy);
            }
        }
    }
}

/// The entry to put back in this state. What a newer program's wanted state says is not known: a strip is repaired with
/// what was seen last, and nothing that stands is altered.
pub(crate) fn put_back(resolved: &Resolved, state: &State) -> Option<Arc<[u8]>> {
    let may = match (&resolved.want, state) {
        (_, State::Uninstalled) | (Want::Nothing(_), _) => false,
        (Want::Newer, state) => *state == State::Stripped,
        (Want::Entry(_), _) => true,
    };
    resolved.put_back.as_ref().filter(|_| may).map(|entry| entry.text().into())
}

#[cfg(test)]
mod tests;
