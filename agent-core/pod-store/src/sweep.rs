//! Records whose network namespace is gone (S06), and the loop that looks after the store while it is the owner's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aether_domain::key::Key;
use aether_domain::limits::{SWEEP_INTERVAL, TOMBSTONE_POLL};
use aether_domain::pods::sweep::{Sweep, Verdict, judge};
use aether_domain::pods::table::Removal;
use aether_domain::pods::{NetnsLook, NotServing, Seen};
use aether_domain::record::Record;
use aether_domain::text::error_chain;
use aether_durable::mark::Look;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::counts;
use crate::rested::Rested;
use crate::store::{Phase, Store, StoreError};
use crate::work::RemoveError;

/// How often the folder of tombstones is looked at, so that one is applied within [`TOMBSTONE_POLL`] of its writing.
const LOOK: Duration = match TOMBSTONE_POLL.checked_div(2) {
    Some(look) => look,
    None => TOMBSTONE_POLL,
};

/// What a sweep did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    /// It removed so many records.
    Removed(usize),
    /// It was held back: too many would have gone.
    Held {
        /// How many.
        gone: usize,
        /// Of how many records.
        of: usize,
    },
}

impl Store {
    /// Applies tombstones and sweeps for as long as it is polled. A failure is logged and tried again.
    ///
    /// Dropping the future between two steps loses nothing: each step is done whole or not at all.
    pub async fn keep(&self, look: Arc<dyn NetnsLook>) {
        let mut tombstones = interval(LOOK);
        tombstones.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first sweep waits: pods that are being made while we start are not to be looked at half made.
        let mut next_sweep = Instant::now() + SWEEP_INTERVAL;
        let mut failing = false;
        let mut rested = Rested::default();
        loop {
            tombstones.tick().await;
            // One call that the kernel answers from its memory: not worth another thread at each look.
            let seen = Look::at(&self.inner.deletes);
            if !rested.holds(seen) {
                match self.apply_tombstones().await {
                    Ok(_) => {
                        failing = false;
                        rested = Rested::after(seen);
                    }
                    // Said once, not at each look.
                    Err(error) if !failing => {
                        failing = true;
                        tracing::error!(error = %error_chain(&error), "tombstones cannot be applied; they are tried again");
                    }
                    Err(_) => {}
                }
            }
            if Instant::now() >= next_sweep {
                next_sweep = Instant::now() + SWEEP_INTERVAL;
                // At each sweep they are looked at whatever the folder's time says (K07).
                rested = Rested::default();
                if let Err(error) = self.sweep(Arc::clone(&look)).await {
                    tracing::error!(error = %error_chain(&error), "the sweep failed; the next one tries again");
                }
            }
        }
    }

    /// Looks at every record's namespace and removes those that are gone (S06).
    pub async fn sweep(&self, look: Arc<dyn NetnsLook>) -> Result<Swept, StoreError> {
        let result = self.sweep_once(look).await;
        let counters = &self.inner.counters;
        let counter = match &result {
            Ok(Swept::Removed(removed)) => {
                counts::add(&counters.swept, *removed);
                &counters.sweeps_done
            }
            Ok(Swept::Held { .. }) => &counters.sweeps_held,
            Err(_) => &counters.sweeps_failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    async fn sweep_once(&self, look: Arc<dyn NetnsLook>) -> Result<Swept, StoreError> {
        let mut breaker = self.inner.breaker.lock().await;
        let (total, gone) = self
            .blocking(move |inner| {
                let records: Vec<Record> = {
                    let state = inner.state();
                    if state.phase != Phase::Owner {
                        return Err(NotServing);
                    }
                    state.table.records().cloned().collect()
                };
                let gone: BTreeMap<Key, Record> = records
                    .iter()
                    .filter(|record| see(&*look, record) == Verdict::Gone)
                    .map(|record| (record.key.clone(), record.clone()))
                    .collect();
                Ok((records.len(), gone))
            })
            .await??;
        let going: BTreeSet<Key> = match breaker.decide(total, gone.keys().cloned().collect()) {
            Sweep::Remove(keys) => keys,
            Sweep::Held { gone, of, agreed } => {
                tracing::warn!(
                    gone,
                    of,
                    agreed,
                    "the sweep is held back: so many pods rarely lose their network namespace at once; look whether the agent \
                     sees the node's namespaces (mount propagation), further sweeps decide",
                );
                return Ok(Swept::Held { gone, of });
            }
        };
        let decide = move |table: &aether_domain::pods::Table, key: &Key| match gone.get(key) {
            Some(looked_at) => table.sweep_one(looked_at),
            None => Removal::Absent,
        };
        let removed = match self.remove_batch(going, decide).await? {
            Ok(removed) => removed,
            Err(RemoveError::NotServing(error)) => return Err(error.into()),
            Err(RemoveError::Write(error)) => return Err(error.into()),
        };
        for record in &removed {
            tracing::info!(
                key = %record.key, pod = %format_args!("{}/{}", record.pod.namespace, record.pod.name),
                netns = record.netns.path, "removed the record of a pod whose network namespace is gone",
            );
        }
        Ok(Swept::Removed(removed.len()))
    }
}

fn see(look: &dyn NetnsLook, record: &Record) -> Verdict {
    let seen = look.look(&record.netns.path);
    if let Seen::Unknown { why } = &seen {
        tracing::debug!(key = %record.key, netns = record.netns.path, why, "a namespace cannot be judged");
    }
    judge(&record.netns, &seen)
}
