//! What the store has done and seen, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the start of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Damaged files that were put aside (S02).
    pub quarantined: u64,
    /// Records of another boot that were dropped (S06).
    pub other_boot: u64,
    /// Tombstones that were applied, whether or not they found a record (K07).
    pub tombstones_applied: u64,
    /// Tombstones of another boot that were dropped (K07).
    pub tombstones_dropped: u64,
    /// Records that a sweep removed (S06).
    pub swept: u64,
    /// Sweeps that were done (S06).
    pub sweeps_done: u64,
    /// Sweeps that were held back (S06).
    pub sweeps_held: u64,
    /// Sweeps that failed.
    pub sweeps_failed: u64,
    /// Passes over the tombstones that failed.
    pub tombstone_passes_failed: u64,
    /// Writes and removals that failed.
    pub write_failures: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) quarantined: AtomicU64,
    pub(crate) other_boot: AtomicU64,
    pub(crate) tombstones_applied: AtomicU64,
    pub(crate) tombstones_dropped: AtomicU64,
    pub(crate) swept: AtomicU64,
    pub(crate) sweeps_done: AtomicU64,
    pub(crate) sweeps_held: AtomicU64,
    pub(crate) sweeps_failed: AtomicU64,
    pub(crate) tombstone_passes_failed: AtomicU64,
    pub(crate) write_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            quarantined: of(&self.quarantined),
            other_boot: of(&self.other_boot),
            tombstones_applied: of(&self.tombstones_applied),
            tombstones_dropped: of(&self.tombstones_dropped),
            swept: of(&self.swept),
            sweeps_done: of(&self.sweeps_done),
            sweeps_held: of(&self.sweeps_held),
            sweeps_failed: of(&self.sweeps_failed),
            tombstone_passes_failed: of(&self.tombstone_passes_failed),
            write_failures: of(&self.write_failures),
        }
    }
}

/// Adds to a counter; a count of things in memory always fits.
pub(crate) fn add(counter: &AtomicU64, more: usize) {
    counter.fetch_add(u64::try_from(more).unwrap_or(u64::MAX), Ordering::Relaxed);
}
