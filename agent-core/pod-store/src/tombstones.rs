//! DELs that found no agent: read, applied, removed (K07).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use aether_domain::key::Key;
use aether_domain::pods::NotServing;
use aether_domain::pods::table::Removal;
use aether_domain::record::Record;
use aether_domain::tombstone::Tombstone;
use aether_durable::atomic::{self, WriteError};
use aether_durable::boot;

use crate::counts;
use crate::files::TOMBSTONES;
use crate::folder::{self, ListError};
use crate::quarantine::{Hands, report_new};
use crate::rested::Known;
use crate::store::{Inner, Phase, Store, StoreError};

/// How many tombstones one job applies: two flushes for all of them, and no key waits long.
const BATCH: usize = 256;

/// What a pass over the tombstones did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// Tombstones that were applied and are gone.
    pub applied: usize,
    /// Records that they removed.
    pub removed: usize,
    /// Tombstones of another boot, which are gone.
    pub dropped: usize,
    /// Files that stay because they cannot be used.
    pub unusable: usize,
}

impl Store {
    /// Applies every tombstone that lies in the folder. For each the record goes first, durably, and then exactly the
    /// tombstone that was read.
    pub async fn apply_tombstones(&self) -> Result<Applied, StoreError> {
        if self.inner.state().phase != Phase::Owner {
            return Err(NotServing.into());
        }
        self.apply_all().await
    }

    pub(crate) async fn apply_all(&self) -> Result<Applied, StoreError> {
        let result = self.pass().await;
        if result.is_err() {
            self.inner.counters.tombstone_passes_failed.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    async fn pass(&self) -> Result<Applied, StoreError> {
        let _one_pass = self.inner.applying.lock().await;
        let (tombstones, unusable) = self.blocking(Inner::read_tombstones).await??;
        let mut sum = Applied { unusable, ..Applied::default() };
        let mut rest = tombstones.into_iter().peekable();
        while rest.peek().is_some() {
            let batch: Vec<_> = rest.by_ref().take(BATCH).collect();
            let keys: BTreeSet<Key> = batch.iter().map(|(_, tombstone)| tombstone.key.clone()).collect();
            let turns = self.inner.lanes.all(&keys).await;
            let applied = self.in_turns(turns, move |inner| inner.apply_batch(&batch)).await??;
            sum.applied += applied.applied;
            sum.removed += applied.removed;
            sum.dropped += applied.dropped;
        }
        Ok(sum)
    }
}

/// Tombstones that are there, by the names of their files.
type Left = Vec<(OsString, Arc<Tombstone>)>;

impl Inner {
    pub(crate) fn read_tombstones(&self) -> Result<(Left, usize), ListError> {
        let mut folder = folder::read(&self.deletes, &TOMBSTONES, &mut Known::default())?;
        let unusable = self.set_aside(&self.deletes, &mut folder, Hands::On);
        let count = unusable.len();
        let mut state = self.state();
        report_new(&state.unusable_tombstones, &unusable);
        state.unusable_tombstones = unusable;
        Ok((folder.good, count))
    }

    fn apply_batch(&self, batch: &[(OsString, Arc<Tombstone>)]) -> Result<Applied, WriteError> {
        let mut sum = Applied::default();
        let mut going: BTreeMap<Key, Record> = BTreeMap::new();
        let now = boot::nanos();
        {
            let mut state = self.state();
            for (_, tombstone) in batch {
                match state.table.del(&tombstone.key, &tombstone.started, now) {
                    Removal::Remove(record) => {
                        going.insert(tombstone.key.clone(), *record);
                        sum.applied += 1;
                    }
                    Removal::Spared | Removal::Absent => sum.applied += 1,
                    Removal::OtherBoot => sum.dropped += 1,
                }
            }
        }
        sum.removed = self.take_away(going.into_values())?.len();
        // By name: a name holds its DEL's key and start, and a file whose name is not its content's was put aside. So what
        // a plugin renames over it meanwhile says the same.
        if let Err(error) = atomic::remove_all(&self.deletes, batch.iter().map(|(name, _)| name)) {
            self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
            return Err(error);
        }
        for (_, tombstone) in batch {
            tracing::info!(
                request_id = %tombstone.request_id, key = %tombstone.key, command = "DEL",
                "applied what a DEL without an agent had left",
            );
        }
        counts::add(&self.counters.tombstones_applied, sum.applied);
        counts::add(&self.counters.tombstones_dropped, sum.dropped);
        Ok(sum)
    }
}
