//! A node in a temporary directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aether_conflist::edit;
use aether_conflist::load::{DropIns, List};
use aether_conflist::own::OwnEntry;
use aether_list_keeper::{Keeper, Outcome, Places};
use sha2::{Digest as _, Sha256};

pub(crate) const LIST: &str = "10-flannel.conflist";
pub(crate) const FLANNEL: &str = "{\n  \"name\": \"cbr0\",\n  \"cniVersion\": \"0.3.1\",\n  \"plugins\": [\n    {\"type\": \"flannel\"},\n    {\"type\": \"portmap\"}\n  ]\n}\n";
pub(crate) const ENTRY: &str = r#"{"name":"aether","type":"aether-cni","v":1}"#;
pub(crate) const NEWER: &str = r#"{"name":"aether","type":"aether-cni","v":2}"#;
/// The binary that is wanted.
pub(crate) const BINARY: &[u8] = b"#!/bin/sh\n# v1\n";

pub(crate) struct Node {
    dir: tempfile::TempDir,
}

impl Node {
    /// Directories, and a wanted state.
    pub(crate) fn empty() -> Self {
        let node = Self { dir: tempfile::tempdir().unwrap() };
        for dir in ["net.d", "bin", "state", "image"] {
            std::fs::create_dir(node.root().join(dir)).unwrap();
        }
        std::fs::write(node.source(), BINARY).unwrap();
        node.want(ENTRY);
        node
    }

    /// With flannel's list, stripped.
    pub(crate) fn flannel() -> Self {
        let node = Self::empty();
        node.put(LIST, FLANNEL);
        node
    }

    pub(crate) fn at(root: &Path) -> Keeper {
        Keeper::new(Places {
            conf_dir: root.join("net.d"),
            bin_dir: root.join("bin"),
            state_dir: root.join("state"),
        })
    }

    pub(crate) fn keeper(&self) -> Keeper {
        Self::at(self.root())
    }
    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }
    pub(crate) fn conf(&self) -> PathBuf {
        self.root().join("net.d")
    }
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }
    pub(crate) fn source(&self) -> PathBuf {
        self.root().join("image/aether-cni")
    }
    pub(crate) fn plugin(&self) -> PathBuf {
        self.root().join("bin/aether-cni")
    }

    pub(crate) fn want(&self, entry: &str) {
        let text = format!(
            r#"{{"format":1,"oldestReader":1,"entry":{entry},"pluginSha256":"{}","installId":"m/1","firstInstalled":1}}"#,
            digest(BINARY)
        );
        self.put(".aether-cni-entry", text);
    }

    pub(crate) fn want_newer(&self) {
        self.put(".aether-cni-entry", r#"{"format":9,"oldestReader":9}"#);
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.conf().join(name), content).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.conf().join(name)).unwrap()).unwrap()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.conf().join(name).exists()
    }

    /// Repairs the list as a module would: reads it, puts the entry in, has it replaced.
    pub(crate) fn repair(&self, entry: &str) -> Outcome {
        let old = self.get(LIST);
        self.keeper().replace_list(LIST, &digest(old.as_bytes()), &chained(&old, entry), || true)
    }

    /// Has the derived lists put right, after a look at `name`.
    pub(crate) fn derive(&self, name: &str) -> Outcome {
        self.keeper().derive_list(name, &digest(self.get(name).as_bytes()), || true)
    }

    /// Temporary files of ours, wherever.
    pub(crate) fn temporaries(&self) -> Vec<PathBuf> {
        let dirs = ["net.d", "bin", "state", "elsewhere"].map(|dir| self.root().join(dir));
        dirs.iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".aether-tmp-"))
            .collect()
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut hex = String::new();
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The list with the entry in it.
pub(crate) fn chained(list: &str, entry: &str) -> Vec<u8> {
    let list = List::load(LIST, list, DropIns::none()).unwrap();
    edit::put(&list, &OwnEntry::parse(entry.as_bytes()).unwrap()).unwrap()
}

pub(crate) fn chained_text(list: &str, entry: &str) -> String {
    String::from_utf8(chained(list, entry)).unwrap()
}

#[track_caller]
pub(crate) fn is(outcome: &Outcome, name: &str, words: &[&str]) {
    assert_eq!(outcome.name(), name, "{outcome:?}");
    for word in words {
        assert!(outcome.detail().contains(word), "no {word:?} in {outcome:?}");
    }
}
