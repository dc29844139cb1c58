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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: usize) -> Key {
        Key::new(format!("c{n}").parse().unwrap(), "eth0".parse().unwrap())
    }

    #[test]
    fn k07_the_latest_start_is_remembered_from_when_it_was_applied() {
        let memory = u64::try_from(DEL_MEMORY.as_nanos()).unwrap();
        let mut forgotten = Forgotten::default();
        forgotten.note(&key(0), 50, 100);
        forgotten.note(&key(0), 40, 200);
        assert_eq!(
            forgotten.latest(&key(0), 200),
            Some(50),
            "an older DEL that comes late takes nothing back"
        );
        assert_eq!(forgotten.latest(&key(0), 200 + memory), Some(50));
        assert_eq!(forgotten.latest(&key(0), 201 + memory), None);
        assert_eq!(forgotten.latest(&key(1), 200), None);
    }

    #[test]
    fn k07_the_memory_does_not_grow_for_ever() {
        let memory = u64::try_from(DEL_MEMORY.as_nanos()).unwrap();
        let mut forgotten = Forgotten::default();
        for n in 0..1000 {
            forgotten.note(&key(n), 1, 1);
            forgotten.note(&key(0), 1, 1);
        }
        assert_eq!(forgotten.len(), 1000);
        forgotten.note(&key(0), 2, 3 + memory);
        assert_eq!(forgotten.len(), 1);
        assert!(!forgotten.is_empty());
        assert_eq!(forgotten.order.len(), 1);
    }
}
