//! A state directory, a store on it, and short ways to say what happens to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aether_domain::clock::{BootId, Stamp};
use aether_domain::format::Format;
use aether_domain::key::Key;
use aether_domain::managed::Managed;
use aether_domain::pods::{
    AddError, Added, Caller, Change, Del, Deleted, FirstInstall, Observer, PodService as _, Presence,
    ServiceError,
};
use aether_domain::record::{Netns, Pod, Record};
use aether_domain::tombstone::Tombstone;
use aether_pod_store::{Config, Ports, Store};

/// A state directory that goes with the test.
pub(crate) struct Ground {
    _dir: tempfile::TempDir,
    pub(crate) state_dir: PathBuf,
    pub(crate) heard: Arc<Heard>,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state_dir = dir.path().join("aether");
        Self { _dir: dir, state_dir, heard: Arc::default() }
    }

    /// A store on the directory; a second one is what the next process would have.
    pub(crate) fn store(&self) -> Store {
        store_at(&self.state_dir, Arc::<Heard>::clone(&self.heard), Arc::new(()))
    }

    /// The owner's store.
    pub(crate) async fn owner(&self) -> Store {
        let store = self.store();
        store.enable().await.unwrap();
        store
    }

    pub(crate) fn pods(&self) -> PathBuf {
        self.state_dir.join("pods")
    }

    pub(crate) fn deletes(&self) -> PathBuf {
        self.state_dir.join("deletes")
    }

    pub(crate) fn record_file(&self, container: &str) -> PathBuf {
        self.pods().join(key(container).file_stem() + ".json")
    }

    /// Writes a tombstone as the plugin does, less the flushes.
    pub(crate) fn tombstone(&self, container: &str, started: Stamp) -> PathBuf {
        let tombstone = tombstone(container, started);
        std::fs::create_dir_all(self.deletes()).unwrap();
        let path = self.deletes().join(tombstone.file_name());
        let temporary = self.deletes().join(".aether-tmp-plugin");
        std::fs::write(&temporary, serde_json::to_vec(&tombstone).unwrap()).unwrap();
        std::fs::rename(&temporary, &path).unwrap();
        path
    }
}

pub(crate) fn store_at(
    state_dir: &Path,
    observer: Arc<dyn Observer>,
    first_install: Arc<dyn FirstInstall>,
) -> Store {
    let config = Config { state_dir: state_dir.to_owned(), boot: boot() };
    Store::new(config, Ports { observer, first_install })
}

/// The changes that were told, and at each of them whether the record's file was there.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<Change>>);

impl Observer for Heard {
    fn changed(&self, change: &Change) {
        self.0.lock().unwrap().push(change.clone());
    }
}

impl Heard {
    pub(crate) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A caller that stays.
pub(crate) struct Here;

impl Caller for Here {
    fn presence(&self) -> Presence {
        Presence::Here
    }
}

/// A caller that is seen so many times, and then no more.
pub(crate) struct Leaves(Mutex<u32>);

impl Leaves {
    pub(crate) fn after(looks: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(looks)))
    }
}

impl Caller for Leaves {
    fn presence(&self) -> Presence {
        let mut looks = self.0.lock().unwrap();
        if *looks == 0 {
            return Presence::Gone;
        }
        *looks -= 1;
        Presence::Here
    }
}

pub(crate) fn boot() -> BootId {
    aether_durable::boot::id().unwrap()
}

/// A moment of this boot.
pub(crate) fn at(nanos: u64) -> Stamp {
    Stamp::new(boot(), nanos)
}

pub(crate) fn key(container: &str) -> Key {
    Key::new(container.parse().unwrap(), "eth0".parse().unwrap())
}

/// A record of `container`, whose pod has the container's name.
pub(crate) fn record(container: &str, started: u64) -> Record {
    record_of(container, container, started)
}

pub(crate) fn record_of(container: &str, pod: &str, started: u64) -> Record {
    Record {
        format: Format::V1,
        key: key(container),
        network: "net".parse().unwrap(),
        started: at(started),
        request_id: format!("{container}-{started}").parse().unwrap(),
        managed: Managed::Yes,
        netns: Netns { path: format!("/run/netns/{container}"), inode: 0 },
        pod: Pod {
            namespace: "default".to_owned(),
            name: pod.to_owned(),
            annotations: BTreeMap::from([("note".to_owned(), "ünï \"code\"\n".to_owned())]),
            addresses: vec!["10.244.1.2/24".to_owned()],
            ..Pod::default()
        },
        policy_labels: BTreeMap::new(),
    }
}

pub(crate) fn tombstone(container: &str, started: Stamp) -> Tombstone {
    Tombstone {
        format: Format::V1,
        key: key(container),
        network: None,
        started,
        request_id: format!("{container}-del").parse().unwrap(),
    }
}

pub(crate) async fn add(store: &Store, record: Record) -> Result<Added, AddError> {
    store.add(record, Arc::new(Here)).await
}

pub(crate) async fn del(store: &Store, container: &str, started: u64) -> Result<Deleted, ServiceError> {
    let request_id = format!("{container}-del").parse().unwrap();
    store.del(Del { key: key(container), started: at(started), request_id }).await
}

pub(crate) fn containers(records: &[Record]) -> Vec<&str> {
    records.iter().map(|record| record.key.container.as_str()).collect()
}

/// The names in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What a process that starts now would load.
pub(crate) async fn on_disk(state_dir: &Path) -> Vec<Record> {
    let store = store_at(state_dir, Arc::new(()), Arc::new(()));
    store.reload().await.unwrap();
    assert_eq!(store.unusable(), [], "something on the disk is torn");
    store.records()
}
