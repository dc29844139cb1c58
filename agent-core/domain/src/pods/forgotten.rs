//! The memory of DELs (K07): an ADD that began before a DEL of its key must not come back after it.

use std::collections::{HashMap, VecDeque};

use crate::key::Key;
use crate::limits::DEL_MEMORY;

/// The latest DEL's start of each key, each for [`DEL_MEMORY`] from when it was applied.
#[derive(Debug, Clone, Default)]
pub struct Forgotten {
    starts: HashMap<Key, Entry>,
    /// In the order in which they were applied, which is the order in which they expire.
    order: VecDeque<(u64, Key)>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    started: u64,
    applied: u64,
}

impl Forgotten {
    /// Notes that a DEL of `key` that began at `started` is applied `now` (all in nanoseconds of this boot).
    pub fn note(&mut self, key: &Key, started: u64, now: u64) {
        self.expire(now);
        let entry = self.starts.entry(key.clone()).or_insert(Entry { started, applied: now });
        entry.started = entry.started.max(started);
        entry.applied = now;
        self.order.push_back((now, key.clone()));
    }

    /// The latest start of the DELs of `key` that are still remembered.
    pub fn latest(&self, key: &Key, now: u64) -> Option<u64> {
        self.starts.get(key).filter(|entry| !is_over(entry.applied, now)).map(|entry| entry.started)
    }

    /// How many keys are remembered.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    fn expire(&mut self, now: u64) {
        while let Some((applied, _)) = self.order.front()
            && is_over(*applied, now)
            && let Some((applied, key)) = self.order.pop_front()
        {
            // A key noted again since has a later entry, which stays.
            if self.starts.get(&key).is_some_and(|entry| entry.applied <= applied) {
                self.starts.remove(&key);
            }
        }
    }
}

fn is_over(applied: u64, now: u64) -> bool {
    u128::from(now.saturating_sub(applied)) > DEL_MEMORY.as_nanos()
}
