//! Which records a sweep removes, and when it is held back (S06).

use std::collections::BTreeSet;

use crate::key::Key;
use crate::limits::{SWEEP_BREAKER_AGREE, SWEEP_BREAKER_MIN, SWEEP_BREAKER_PERCENT};
use crate::pods::port::Seen;
use crate::record::Netns;

/// What a look at a record's namespace says of its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Alive,
    /// It is gone.
    Gone,
    /// It cannot be told: the record stays.
    Unknown,
}

/// Judges one record. A namespace whose mount cannot be seen is unknown, never gone.
pub fn judge(netns: &Netns, seen: &Seen) -> Verdict {
    match seen {
        _ if netns.path.is_empty() => Verdict::Unknown,
        // Another namespace at the same path: the path was used again, ours is gone.
        Seen::Namespace { inode } if netns.inode != 0 && *inode != 0 && *inode != netns.inode => {
            Verdict::Gone
        }
        Seen::Namespace { .. } => Verdict::Alive,
        Seen::Missing => Verdict::Gone,
        Seen::Unknown { .. } => Verdict::Unknown,
    }
}

/// Holds back a sweep that would remove too much, until further ones agree.
#[derive(Debug, Clone, Default)]
pub struct Breaker {
    held: Option<Held>,
}

#[derive(Debug, Clone)]
struct Held {
    gone: BTreeSet<Key>,
    agreed: u32,
}

/// What a sweep does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sweep {
    /// Remove these; often none.
    Remove(BTreeSet<Key>),
    /// Remove nothing yet.
    Held {
        /// How many would go.
        gone: usize,
        /// Of how many records.
        of: usize,
        /// How many further sweeps have agreed so far.
        agreed: u32,
    },
}

impl Breaker {
    /// Decides about a sweep that found `gone` of `total` records without their namespace.
    pub fn decide(&mut self, total: usize, gone: BTreeSet<Key>) -> Sweep {
        if !trips(total, gone.len()) {
            self.held = None;
            return Sweep::Remove(gone);
        }
        let held = match self.held.take() {
            // Only what every sweep since the first found gone is agreed upon.
            Some(held) => {
                let both: BTreeSet<Key> = held.gone.intersection(&gone).cloned().collect();
                if trips(total, both.len()) {
                    Held { gone: both, agreed: held.agreed + 1 }
                } else {
                    Held { gone, agreed: 0 }
                }
            }
            None => Held { gone, agreed: 0 },
        };
        if held.agreed >= SWEEP_BREAKER_AGREE {
            return Sweep::Remove(held.gone);
        }
        let answer = Sweep::Held { gone: held.gone.len(), of: total, agreed: held.agreed };
        self.held = Some(held);
        answer
    }
}

fn trips(total: usize, gone: usize) -> bool {
    gone >= SWEEP_BREAKER_MIN && gone.saturating_mul(100) > total.saturating_mul(SWEEP_BREAKER_PERCENT)
}

#[cfg(test)]
mod tests;
