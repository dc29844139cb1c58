//! Reading the records from the disk: at start, at takeover, and again (S02, S03).

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aether_domain::key::Key;
use aether_domain::paths::TEMP_PREFIX;
use aether_domain::pods::table::{Dropped, Why};
use aether_domain::record::Record;
use aether_domain::text::error_chain;
use aether_durable::atomic::{self, WriteError};

use crate::counts;
use crate::files::{FOLDER_MODE, RECORDS, TOMBSTONES};
use crate::folder::{self, ListError};
use crate::quarantine::{Hands, report_new};
use crate::rested::Known;
use crate::store::{Files, Inner, Phase, Store, StoreError};
use crate::tombstones::Applied;

/// How old a temporary file in the tombstones' folder must be to be a killed plugin's: a plugin that still writes one ends
/// within a second (K07).
const TEMP_AGE: Duration = Duration::from_secs(60);

/// Records by key; whoever looks at them shares them.
pub(crate) type ByKey = BTreeMap<Key, Arc<Record>>;

/// What a reload found changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Records that were not known.
    pub added: Vec<Record>,
    /// Records that differ.
    pub updated: Vec<Updated>,
    /// Records that are gone, as they were.
    pub removed: Vec<Record>,
}

/// A record that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// What it was.
    pub before: Record,
    /// What it is.
    pub after: Record,
}

/// What becoming the owner found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enabled {
    /// What changed since the last look.
    pub reloaded: Reloaded,
    /// What the tombstones did.
    pub tombstones: Applied,
}

impl Store {
    /// Reads the directory again, takes what is there, and says what changed (S03). The owner puts damaged files aside;
    /// a standby only reports them. The observer is not told: the answer says it all.
    pub async fn reload(&self) -> Result<Reloaded, StoreError> {
        self.alone(|inner| {
            let hands = match inner.state().phase {
                Phase::Standby => Hands::Off,
                Phase::Loading | Phase::Owner => Hands::On,
            };
            inner.load(hands)
        })
        .await?
        .map_err(StoreError::from)
    }

    /// Looks through both folders as a standby does (T03), so that what they hold is known, and what it takes to read them is at
    /// hand, when their turn comes in earnest. What fails here fails again then, and is said then.
    pub async fn read_ahead(&self) {
        // Whoever asks goes on either way.
        let _ = self
            .alone(|inner| {
                let phase = inner.state().phase;
                if phase == Phase::Standby {
                    let _ = inner.load(Hands::Off);
                    let _ = folder::read(&inner.deletes, &TOMBSTONES, &mut Known::default());
                }
            })
            .await;
    }

    /// Makes this agent's store the owner's, which the caller must be: [`Store::apply_left`], then [`Store::own`].
    pub async fn enable(&self) -> Result<Enabled, StoreError> {
        let tombstones = self.apply_left().await?;
        Ok(Enabled { reloaded: self.own().await?, tombstones })
    }

    /// The first step of an owner: makes the folders, removes what killed writers left, and applies the tombstones to the
    /// files (T05). Nothing is served yet.
    pub async fn apply_left(&self) -> Result<Applied, StoreError> {
        let left = self
            .alone(|inner| {
                inner.prepare()?;
                let (left, _) = inner.read_tombstones()?;
                if !left.is_empty() {
                    // What a first attempt that failed half way has changed already is a change still.
                    let before = || by_key(inner.state().table.shared());
                    inner.before().get_or_insert_with(before);
                    // A standby's table may be old: which record a tombstone means is seen in the files.
                    inner.load(Hands::On)?;
                }
                Ok::<_, StoreError>(left.len())
            })
            .await??;
        if left == 0 {
            return Ok(Applied::default());
        }
        // A tombstone that cannot be removed is tried again within a second; its DEL is remembered by then.
        Ok(self.apply_all().await.unwrap_or_else(|error| {
            tracing::error!(error = %error_chain(&error), "tombstones were not applied before serving; they are tried again");
            Applied::default()
        }))
    }

    /// The second: reads the records, says what is different from what was known before the first (S03), and serves from
    /// then on. The observer is not told: the answer says it all.
    pub async fn own(&self) -> Result<Reloaded, StoreError> {
        self.alone(|inner| {
            let since_last = inner.load(Hands::On)?;
            let before = inner.before().take();
            let mut state = inner.state();
            state.phase = Phase::Owner;
            Ok(before.map_or(since_last, |before| difference(before, by_key(state.table.shared()))))
        })
        .await?
    }

    /// Waits until nothing is being done to any record, tombstones included.
    pub async fn rest(&self) {
        let _no_pass = self.inner.applying.lock().await;
        // What fails here is a process that ends.
        let _ = self.alone(|_| ()).await;
    }
}

impl Inner {
    fn prepare(&self) -> Result<(), WriteError> {
        self.make_folders()?;
        for folder in [&self.state_dir, &self.pods, &self.deletes] {
            close_to_others(folder);
        }
        self.state().phase = Phase::Loading;
        // Only the owner writes records, so whatever is unfinished there is dead. Plugins write tombstones at any time.
        let swept = atomic::sweep_temporaries(&self.pods)
            .and_then(|records| sweep_old_temporaries(&self.deletes).map(|tombstones| records + tombstones));
        match swept {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "removed unfinished files of killed writers"),
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "unfinished files of killed writers stay");
            }
        }
        Ok(())
    }

    fn load(&self, hands: Hands) -> Result<Reloaded, ListError> {
        // The usual case of a takeover, in which no record is even looked at: it is a part of the time without an owner.
        if self.state().files == Files::Taken && folder::is_known(&self.pods, &self.known()) {
            return Ok(Reloaded::default());
        }
        let mut folder = folder::read(&self.pods, &RECORDS, &mut self.known())?;
        let unusable = self.set_aside(&self.pods, &mut folder, hands);
        let records: Vec<Arc<Record>> = folder.good.into_iter().map(|(_, record)| record).collect();
        let (before, after, dropped) = {
            let mut state = self.state();
            let before = by_key(state.table.shared());
            let dropped = state.table.load(records);
            report_new(&state.unusable_records, &unusable);
            let all = unusable.is_empty() && dropped.is_empty();
            state.files = if all { Files::Taken } else { Files::Mixed };
            state.unusable_records = unusable;
            (before, by_key(state.table.shared()), dropped)
        };
        if hands == Hands::On {
            self.drop_files(&dropped);
        }
        Ok(difference(before, after))
    }

    fn drop_files(&self, dropped: &[Dropped]) {
        if dropped.is_empty() {
            return;
        }
        let of_other_boot = dropped.iter().filter(|dropped| dropped.why == Why::OtherBoot).count();
        counts::add(&self.counters.other_boot, of_other_boot);
        tracing::info!(
            other_boot = of_other_boot,
            replaced = dropped.len() - of_other_boot,
            "dropped records of pods that are gone",
        );
        if let Err(error) = self.remove_records(dropped.iter().map(|dropped| &dropped.record.key)) {
            tracing::warn!(error = %error_chain(&error), "dropped records stay on the disk until the next start");
        }
    }
}

fn by_key<'a>(records: impl Iterator<Item = &'a Arc<Record>>) -> ByKey {
    records.map(|record| (record.key.clone(), Arc::clone(record))).collect()
}

fn difference(mut before: ByKey, after: ByKey) -> Reloaded {
    let owned = Arc::unwrap_or_clone;
    let mut reloaded = Reloaded::default();
    for (key, after) in after {
        match before.remove(&key) {
            None => reloaded.added.push(owned(after)),
            Some(before) if before != after => {
                reloaded.updated.push(Updated { before: owned(before), after: owned(after) });
            }
            Some(_) => {}
        }
    }
    reloaded.removed = before.into_values().map(owned).collect();
    reloaded
}

/// Takes everybody else's access to a folder that was made by another (a kubelet makes a hostPath 0755).
fn close_to_others(folder: &Path) {
    let Ok(metadata) = folder.metadata() else { return };
    // No bit for group or others.
    if metadata.mode().trailing_zeros() >= 6 {
        return;
    }
    let narrowed = std::fs::set_permissions(folder, std::fs::Permissions::from_mode(FOLDER_MODE));
    if let Err(error) = narrowed {
        tracing::warn!(folder = %folder.display(), %error, "others can look into a folder of the state directory");
    }
}

fn sweep_old_temporaries(folder: &Path) -> Result<usize, WriteError> {
    let now = SystemTime::now();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(0) };
    let old = |entry: &std::fs::DirEntry| {
        // A time in the future is of a clock that was wrong, and no sign of life.
        let age =
            || entry.metadata().and_then(|metadata| metadata.modified()).map(|at| now.duration_since(at));
        entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX)
            && matches!(age(), Ok(age) if age.as_ref().map_or_else(std::time::SystemTimeError::duration, |age| *age) > TEMP_AGE)
    };
    let names: Vec<_> = entries.flatten().filter(old).map(|entry| entry.file_name()).collect();
    if names.is_empty() { Ok(0) } else { atomic::remove_all(folder, &names) }
}
