//! What readiness is made of, and since when (C06, C08): pure, the time is passed in.

use std::time::Duration;

use aether_chain_watch::{Binary, Observation};
use aether_domain::chain::State;
use aether_domain::limits::{CHAIN_POLL, CHAIN_RECHECKS};

use super::view;

/// A fight counts as unchained until its list has stood for the longest pause between two repairs.
pub(crate) const FIGHT: Duration = Duration::from_secs(60);

/// Something that is so, is not so, or cannot be told, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) state: Option<bool>,
    pub(crate) since: Duration,
}

impl Held {
    fn set(&mut self, state: Option<bool>, now: Duration) {
        if self.state != state {
            *self = Self { state, since: now };
        }
    }
}

/// Whether the agent may say that it is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// As far as the chain goes.
    Ready,
    /// No: why.
    NotReady(String),
}

/// Whether the chain counts for readiness (C09).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reassert {
    /// It is repaired, and counts.
    On,
    /// Neither.
    Off,
}

/// Times are since the agent's start.
#[derive(Debug, Clone)]
pub(crate) struct Health {
    pub(crate) serving: Held,
    pub(crate) chained: Held,
    reassert: Reassert,
    /// What is wrong with the chain now.
    cause: Option<String>,
    /// Since when `cause` is something, or nothing.
    cause_since: Duration,
    /// Since when the node has not been right for a whole re-check.
    unfit_since: Option<Duration>,
    /// When a fight was declared, or the list was last seen unchained in it.
    fight: Option<Duration>,
}

impl Health {
    pub(crate) fn new(reassert: Reassert) -> Self {
        let unknown = |state| Held { state, since: Duration::ZERO };
        Self {
            serving: unknown(Some(false)),
            chained: unknown(None),
            reassert,
            cause: None,
            cause_since: Duration::ZERO,
            unfit_since: None,
            fight: None,
        }
    }

    /// The CNI socket is answered, or is no longer.
    pub(crate) fn serving(&mut self, serves: bool, now: Duration) {
        self.serving.set(Some(serves), now);
    }

    /// Somebody undoes each repair (C06).
    pub(crate) fn fight(&mut self, now: Duration) {
        self.fight = Some(now);
        self.chained.set(Some(false), now);
    }

    /// The list was looked at.
    pub(crate) fn observe(&mut self, seen: &Observation, now: Duration) {
        let chained = seen.state == State::Chained;
        if let Some(since) = self.fight {
            if !chained {
                self.fight = Some(now);
            } else if now.saturating_sub(since) >= FIGHT {
                self.fight = None;
            }
        }
        let fought = self.fight.is_some();
        let state = match seen.state {
            State::Unknown { .. } => None,
            _ => Some(chained && !fought),
        };
        self.chained.set(state, now);
        let cause = cause(seen).or_else(|| {
            fought.then(|| {
                "somebody undoes each repair of the list; `aetherctl events` names the file".to_owned()
            })
        });
        // What held until now has done so to this moment.
        self.settle(now);
        if self.cause.is_some() != cause.is_some() {
            self.cause_since = now;
        }
        self.cause = cause;
        if self.cause.is_some() && self.unfit_since.is_none() {
            self.unfit_since = Some(now);
        }
    }

    /// Whether the chain lets the agent be ready at `now`.
    pub(crate) fn readiness(&self, now: Duration) -> Readiness {
        let mut at = self.clone();
        at.settle(now);
        let long = |since: Duration| now.saturating_sub(since) >= CHAIN_POLL * CHAIN_RECHECKS;
        if self.reassert == Reassert::Off || !at.unfit_since.is_some_and(long) {
            return Readiness::Ready;
        }
        let why = at
            .cause
            .unwrap_or_else(|| format!("the chain was put right less than {} s ago", CHAIN_POLL.as_secs()));
        Readiness::NotReady(why)
    }

    /// A state counts once it has held for one re-check.
    fn settle(&mut self, now: Duration) {
        if self.cause.is_none() && now.saturating_sub(self.cause_since) >= CHAIN_POLL {
            self.unfit_since = None;
        }
    }
}

/// What is wrong, if anything is. Uninstalled is no fault, whatever the plugin's binary is.
fn cause(seen: &Observation) -> Option<String> {
    let file = seen.file.as_deref().unwrap_or("the CNI directory");
    match (&seen.state, &seen.binary) {
        (State::Uninstalled, _) | (State::Chained, Binary::Right | Binary::Unknown { .. }) => None,
        (State::Chained, Binary::Missing) => Some("the plugin's binary is missing".to_owned()),
        (State::Chained, Binary::Wrong { how }) => {
            Some(format!("the plugin's binary is not the wanted one: {how}"))
        }
        (state, _) => {
            let detail = view::detail(state);
            let colon = if detail.is_empty() { "" } else { ": " };
            Some(format!("the chain is {} ({file}){colon}{detail}", state.name()))
        }
    }
}

#[cfg(test)]
mod tests;
