//! The calls of the plugin, as the port has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use aether_domain::key::Key;
use aether_domain::limits::STATE_FILE_MAX;
use aether_domain::pods::table::Removal;
use aether_domain::pods::{
    AddError, Added, Caller, Check, Del, Deleted, Gc, Known, NotServing, PodService, ServiceError, Table,
};
use aether_domain::record::Record;
use aether_domain::text::error_chain;

use crate::files::record_bytes;
use crate::store::{Store, StoreError};
use crate::work::{RemoveError, Wrote};

/// How many keys one job removes together: one flush of the directory for all of them.
const BATCH: usize = 128;

impl PodService for Store {
    async fn add(&self, record: Record, caller: Arc<dyn Caller>) -> Result<Added, AddError> {
        let key = record.key.clone();
        let storage = |source| AddError::Storage { key: key.clone(), source };
        let bytes = record_bytes(&record).map_err(|error| storage(error.into()))?;
        if bytes.len() > STATE_FILE_MAX {
            return Err(AddError::TooLarge { key, bytes: bytes.len(), max: STATE_FILE_MAX });
        }
        let written = record.clone();
        let wrote = self
            .in_lane(&key, move |inner| inner.add(&record, &bytes, &*caller))
            .await
            .map_err(|error| storage(error.into()))??;
        // The own turn is over: whoever holds one lane and waits for another may wait in a circle.
        match wrote {
            Wrote::Standing => Ok(Added::Standing),
            Wrote::Recorded { replaced } if replaced.is_empty() => Ok(Added::Recorded),
            Wrote::Recorded { replaced } => Ok(self.replace(replaced, written).await),
        }
    }

    async fn del(&self, del: Del) -> Result<Deleted, ServiceError> {
        let Del { key, started, .. } = del;
        let what = format!("delete {key}");
        let lane = key.clone();
        self.in_lane(&lane, move |inner| inner.del(&key, &started))
            .await
            .map_err(|error| broken(what, error))?
    }

    async fn check(&self, check: Check) -> Result<Known, ServiceError> {
        let Check { key, netns_created } = check;
        let what = format!("check {key}");
        let lane = key.clone();
        self.in_lane(&lane, move |inner| {
            let mut state = inner.state();
            let known = state.serving()?.check(&key, None, None);
            drop(state);
            // The time of the first install is read from a file, and only where it matters.
            if known != Known::Missing || netns_created.is_none() {
                return Ok(known);
            }
            let installed = inner.ports.first_install.first_installed();
            Ok(inner.state().serving()?.check(&key, netns_created, installed))
        })
        .await
        .map_err(|error| broken(what, error))?
    }

    async fn gc(&self, gc: Gc) -> Result<usize, ServiceError> {
        let Gc { network, valid, started } = gc;
        let what = || format!("remove the records of network {network} that the runtime no longer has");
        let stale: Vec<Key> = self.inner.state().serving()?.gc(&network, &valid, &started);
        let mut removed = 0;
        for batch in stale.chunks(BATCH) {
            let keys: BTreeSet<Key> = batch.iter().cloned().collect();
            let (network, started) = (network.clone(), started.clone());
            let decide = move |table: &Table, key: &Key| table.gc_one(key, &network, &started);
            let result = self.remove_batch(keys, decide).await.map_err(|error| broken(what(), error))?;
            removed += result.map_err(|error| failed(what(), error))?.len();
        }
        Ok(removed)
    }

    async fn status(&self) -> Result<(), ServiceError> {
        self.inner.state().serving().map_err(ServiceError::from)?;
        let what = || "keep records in the state directory".to_owned();
        let room =
            self.blocking(crate::store::Inner::has_room).await.map_err(|error| broken(what(), error))?;
        room.map_err(|error| ServiceError::Storage { what: what(), source: error.into() })
    }
}

impl Store {
    /// Removes the records that `by` replaced. A failure is no failure of the ADD, which is recorded: the load, the DEL or
    /// the sweep removes what is left.
    async fn replace(&self, replaced: Vec<Key>, by: Record) -> Added {
        let mut gone = Vec::new();
        for old in replaced {
            let (lane, by) = (old.clone(), by.clone());
            let job = move |inner: &crate::store::Inner| {
                inner.remove_if([&old], |table, key| table.replace(key, &by))
            };
            match self.in_lane(&lane, job).await {
                Ok(Ok(records)) => gone.extend(records.into_iter().map(|record| record.key)),
                Ok(Err(error)) => warn_replaced(&lane, &error),
                Err(error) => warn_replaced(&lane, &error),
            }
        }
        if gone.is_empty() { Added::Recorded } else { Added::Replaced(gone) }
    }

    /// Decides about several keys in all their turns, and removes what is to go.
    pub(crate) async fn remove_batch(
        &self,
        keys: BTreeSet<Key>,
        decide: impl Fn(&Table, &Key) -> Removal + Send + 'static,
    ) -> Result<Result<Vec<Record>, RemoveError>, StoreError> {
        let turns = self.inner.lanes.all(&keys).await;
        self.in_turns(turns, move |inner| inner.remove_if(&keys, decide)).await
    }
}

impl crate::store::Inner {
    /// Whether a record could be written now, as far as can be told without writing one (K10).
    fn has_room(&self) -> Result<(), std::io::Error> {
        let stat = rustix::fs::statvfs(&self.pods)?;
        if stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(rustix::io::Errno::ROFS.into());
        }
        // File systems without a fixed number of inodes say 0 of both.
        if stat.f_bfree == 0 || (stat.f_files != 0 && stat.f_ffree == 0) {
            return Err(rustix::io::Errno::NOSPC.into());
        }
        Ok(())
    }
}

fn warn_replaced(key: &Key, error: &dyn std::error::Error) {
    tracing::warn!(
        %key, error = %error_chain(error),
        "the record of an earlier sandbox of the same pod was not removed; its DEL, the sweep or the next start removes it",
    );
}

fn broken(what: String, error: StoreError) -> ServiceError {
    match error {
        StoreError::NotServing(error) => error.into(),
        other => ServiceError::Storage { what, source: other.into() },
    }
}

fn failed(what: String, error: RemoveError) -> ServiceError {
    match error {
        RemoveError::NotServing(NotServing) => NotServing.into(),
        RemoveError::Write(error) => ServiceError::Storage { what, source: error.into() },
    }
}
