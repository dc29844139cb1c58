//! The store's state, and what is asked of it without a key.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aether_domain::clock::BootId;
use aether_domain::key::Key;
use aether_domain::paths;
use aether_domain::pods::sweep::Breaker;
use aether_domain::pods::{FirstInstall, NotServing, Observer, Table, Unusable};
use aether_domain::record::Record;
use aether_durable::atomic::WriteError;
use tokio::sync::{RwLock, Semaphore};

use crate::counts::{Counters, Counts};
use crate::folder::ListError;
use crate::lanes::{Lanes, Turn};
use crate::load::ByKey;
use crate::rested::Known;

/// How many keys are worked on at once: enough to share the disk's flushes, few enough to leave blocking threads to
/// others.
const DISK_JOBS: usize = 32;

/// Where the records are, and which boot this is.
#[derive(Debug, Clone)]
pub struct Config {
    /// The state directory (`aether_domain::paths::STATE_DIR`).
    pub state_dir: PathBuf,
    /// This boot (`aether_durable::boot::id`).
    pub boot: BootId,
}

/// What the store calls.
#[derive(Clone)]
pub struct Ports {
    /// Hears of each change, in the order of each key's calls.
    pub observer: Arc<dyn Observer>,
    /// Tells when Aether was first installed (K09).
    pub first_install: Arc<dyn FirstInstall>,
}

/// Why the store could not do what is no call of the plugin.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A folder cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// A folder cannot be made, or a file in it not written or removed.
    #[error("cannot keep the state of pods; free or repair the disk")]
    Write(#[from] WriteError),
    /// Only the owner may do this.
    #[error(transparent)]
    NotServing(#[from] NotServing),
    /// The work ended before its end: it panicked (the log says where), or the process is ending.
    #[error("the work on the state directory was broken off; the log says why")]
    Broken(#[source] tokio::task::JoinError),
}

/// The pods of this node. Clones share everything.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) state_dir: PathBuf,
    pub(crate) pods: PathBuf,
    pub(crate) deletes: PathBuf,
    pub(crate) ports: Ports,
    pub(crate) counters: Counters,
    pub(crate) lanes: Lanes,
    /// Held to read by work on a key, to write by a reload, which must not see half of one.
    still: Arc<RwLock<()>>,
    disk: Arc<Semaphore>,
    /// One pass over the tombstones, or one sweep, at a time.
    pub(crate) applying: tokio::sync::Mutex<()>,
    pub(crate) breaker: tokio::sync::Mutex<Breaker>,
    state: Mutex<State>,
    /// What was known before a takeover began (S03).
    before: Mutex<Option<ByKey>>,
    /// The records' files as they were read last.
    known: Mutex<Known<Record>>,
}

pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) phase: Phase,
    /// What became of the files of `pods/` when they were read last.
    pub(crate) files: Files,
    /// Files of `pods/` that could not be used.
    pub(crate) unusable_records: Vec<Unusable>,
    /// Files of `deletes/` that could not be used.
    pub(crate) unusable_tombstones: Vec<Unusable>,
}

/// What became of a folder's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// Each one is a record of the table.
    Taken,
    /// Some are of no use or were left out; or none were read yet.
    Mixed,
}

/// Who may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody here: another agent owns the node. Nothing is written (T03).
    Standby,
    /// This agent, which is still loading.
    Loading,
    /// This agent, and calls are served.
    Owner,
}

impl State {
    pub(crate) fn serving(&mut self) -> Result<&mut Table, NotServing> {
        match self.phase {
            Phase::Owner => Ok(&mut self.table),
            Phase::Standby | Phase::Loading => Err(NotServing),
        }
    }
}

impl Store {
    /// A standby's view of the directory, which is not read yet ([`Store::reload`]). Nothing is written before
    /// [`Store::enable`].
    pub fn new(config: Config, ports: Ports) -> Self {
        let Config { state_dir, boot } = config;
        let inner = Inner {
            pods: state_dir.join(paths::PODS),
            deletes: state_dir.join(paths::DELETES),
            state_dir,
            ports,
            counters: Counters::default(),
            lanes: Lanes::default(),
            still: Arc::default(),
            disk: Arc::new(Semaphore::new(DISK_JOBS)),
            applying: tokio::sync::Mutex::default(),
            breaker: tokio::sync::Mutex::default(),
            state: Mutex::new(State {
                table: Table::new(boot),
                phase: Phase::Standby,
                files: Files::Mixed,
                unusable_records: Vec::new(),
                unusable_tombstones: Vec::new(),
            }),
            before: Mutex::default(),
            known: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// How many records there are.
    pub fn count(&self) -> usize {
        self.inner.state().table.records().len()
    }

    /// Every record, by key.
    pub fn records(&self) -> Vec<Record> {
        self.inner.state().table.records().cloned().collect()
    }

    /// Files that could not be used: quarantined, of a newer format, or foreign.
    pub fn unusable(&self) -> Vec<Unusable> {
        let state = self.inner.state();
        state.unusable_records.iter().chain(&state.unusable_tombstones).cloned().collect()
    }

    /// What was counted since the start of the process.
    pub fn counts(&self) -> Counts {
        self.inner.counters.read()
    }

    /// Runs `job` on a blocking thread in the turn of `key`. Dropped before its turn, nothing happens; after that the job
    /// runs to its end and holds the turn until then.
    pub(crate) async fn in_lane<T: Send + 'static>(
        &self,
        key: &Key,
        job: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        // Entered before the first await: the order of the lane is the order of the first polls.
        let place = self.inner.lanes.enter(key);
        let turn = place.turn().await;
        self.in_turns(vec![turn], job).await
    }

    /// As [`Self::in_lane`], for turns that the caller has waited for.
    pub(crate) async fn in_turns<T: Send + 'static>(
        &self,
        turns: Vec<Turn>,
        job: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let still = Arc::clone(&self.inner.still).read_owned().await;
        // The semaphore is never closed.
        let place = Arc::clone(&self.inner.disk).acquire_owned().await.ok();
        self.blocking(move |inner| {
            let _held = (turns, still, place);
            job(inner)
        })
        .await
    }

    /// Runs `job` on a blocking thread while no key is worked on.
    pub(crate) async fn alone<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let still = Arc::clone(&self.inner.still).write_owned().await;
        self.blocking(move |inner| {
            let _held = still;
            job(inner)
        })
        .await
    }

    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = Arc::clone(&self.inner);
        tokio::task::spawn_blocking(move || job(&inner)).await.map_err(StoreError::Broken)
    }
}

impl Inner {
    pub(crate) fn before(&self) -> MutexGuard<'_, Option<ByKey>> {
        // It is replaced as a whole.
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known<Record>> {
        // A read that panicked has left less of it, which is read again.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in a critical section can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
