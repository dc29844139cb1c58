//! Which file a runtime loads, and what it makes of it (I04, I07).

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::json::{Document, Node};
use crate::libcni::{self, Version};

mod judge;
mod refusal;
pub use refusal::{By, Position, Refusal};

/// The endings of files that containerd looks at. Hidden names with these endings are loaded too.
pub const ENDINGS: [&str; 3] = [".conf", ".conflist", ".json"];
/// The ending of a list; the others hold one plugin's configuration.
pub const LIST_ENDING: &str = ".conflist";
/// The ending of a drop-in inside `net.d/<list name>/`.
pub const DROP_IN_ENDING: &str = ".conf";

/// The names that the runtime looks at, in its order; it loads the first one and never falls back to the next (I04).
///
/// `names` are those of everything in `net.d` that is not a directory; a symbolic link is not one, wherever it points.
///
/// ```
/// use aether_conflist::load::candidates;
/// let order = candidates(["87-podman.conflist", "100-crio.conflist", "calico-kubeconfig", ".tmp.conf"]);
/// assert_eq!(order, [".tmp.conf", "100-crio.conflist", "87-podman.conflist"]);
/// ```
pub fn candidates<N: AsRef<OsStr>>(names: impl IntoIterator<Item = N>) -> Vec<OsString> {
    let mut order: Vec<OsString> =
        names.into_iter().map(|name| name.as_ref().to_owned()).filter(|name| is_candidate(name)).collect();
    order.sort_by(|a, b| a.as_encoded_bytes().cmp(b.as_encoded_bytes()));
    order
}

/// Whether a runtime looks at a file of this name.
pub fn is_candidate(name: &OsStr) -> bool {
    ENDINGS.iter().any(|ending| name.as_encoded_bytes().ends_with(ending.as_bytes()))
}

/// Whether a file of this name holds a list or one plugin's configuration.
pub fn kind_of(name: &OsStr) -> Kind {
    if name.as_encoded_bytes().ends_with(LIST_ENDING.as_bytes()) { Kind::List } else { Kind::Single }
}

/// What a file of `net.d` holds, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A `.conflist`: a list of plugins.
    List,
    /// A `.conf` or `.json`: one plugin's configuration, which cannot be chained to (I06).
    Single,
}

/// A file's content, as far as it could be read. The difference between the last two is who is blind: the runtime too,
/// or only we.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The bytes.
    Bytes(Vec<u8>),
    /// The runtime cannot read it either (a dangling link, a link to a directory, a name too long): why.
    Broken(String),
    /// We could not read it, the runtime perhaps can (no permission, larger than we read, an I/O error): why.
    Unread(String),
}

/// One file of `net.d/<list name>/` whose name ends with `.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropIn {
    /// The file's name, without the directory.
    pub file_name: OsString,
    /// What it holds.
    pub content: Content,
}

/// What lies in the directory that [`drop_in_dir`] names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropIns {
    /// Everything in it that is not a directory. Other names than `*.conf` and the order do not matter; a directory
    /// that does not exist is an empty list.
    Files(Vec<DropIn>),
    /// The directory is there but cannot be listed, by nobody (it is a file, say): why. libcni 1.3 refuses that.
    Broken(String),
    /// We could not list it: why.
    Unread(String),
}

impl DropIns {
    /// No drop-ins, or no directory for them.
    pub fn none() -> Self {
        Self::Files(Vec::new())
    }
}

/// The directory whose `*.conf` libcni 1.3 appends to the list, or `None` where it reads none (a single
/// configuration, `loadOnlyInlinedPlugins`, or a list that is refused before). It is a sub directory of `conf_dir` for
/// every usual name, and whatever libcni makes of an unusual one (`""` is `conf_dir` itself).
pub fn drop_in_dir(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> Option<PathBuf> {
    libcni::drop_in_dir(conf_dir, file_name, bytes)
}

/// One entry of `plugins`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its `type`, as libcni sees it.
    pub plugin_type: String,
    /// Where it stands in the file. For a single configuration, the whole object.
    pub span: Range<usize>,
    /// Its value in one spelling: two entries are equal as JSON values exactly when these bytes are.
    pub canonical: Vec<u8>,
}

impl Entry {
    /// Whether it is ours.
    pub fn is_ours(&self) -> bool {
        self.plugin_type == crate::own::TYPE
    }
}

/// One entry that libcni 1.3 appends from a drop-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropInEntry {
    /// The file's name inside the drop-in directory.
    pub file_name: OsString,
    /// Its `type`, as libcni sees it.
    pub plugin_type: String,
}

impl DropInEntry {
    /// Whether it is ours. Such a one is never touched but named (I04).
    pub fn is_ours(&self) -> bool {
        self.plugin_type == crate::own::TYPE
    }
}

/// Who takes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    ByBoth,
    By(Version),
}

/// A file that libcni takes, and what it makes of it.
#[derive(Debug, Clone)]
pub struct List {
    file_name: OsString,
    taken: Taken,
    document: Document,
    kind: Kind,
    name: String,
    cni_version_1_1: String,
    cni_version_1_3: String,
    nodes: Vec<Node>,
    array: Option<Node>,
    entries: Vec<Entry>,
    drop_ins: Vec<DropInEntry>,
}

impl List {
    /// What both versions make of the file, or who refuses it, where and why (I07). The text of a refusal is complete:
    /// file, line and column, reason.
    ///
    /// Give [`DropIns::none`] where [`drop_in_dir`] answers `None`.
    pub fn load(
        file_name: impl AsRef<OsStr>,
        bytes: impl AsRef<[u8]>,
        drop_ins: DropIns,
    ) -> Result<Self, Refusal> {
        judge::both(file_name.as_ref(), bytes.as_ref(), drop_ins)
    }

    /// What one version makes of the file, whatever the other does: to tell the two apart, and to take our entry out of
    /// a list that only one of them loads. Only [`Self::load`] says that a list is valid, and
    /// [`crate::edit::put`] refuses a list from here. libcni 1.1 knows no drop-ins and ignores `drop_ins`.
    pub fn load_by(
        version: Version,
        file_name: impl AsRef<OsStr>,
        bytes: impl AsRef<[u8]>,
        drop_ins: DropIns,
    ) -> Result<Self, Refusal> {
        judge::one(version, file_name.as_ref(), bytes.as_ref(), drop_ins)
    }

    /// The file's name.
    pub fn file_name(&self) -> &OsStr {
        &self.file_name
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.document.bytes()
    }

    /// Whether it is a list or a single configuration.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The network's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The CNI version by which `by` calls the plugins; `""` where none is declared, which means 0.1.0. The two differ
    /// where the list has `cniVersions`.
    pub fn cni_version(&self, by: Version) -> &str {
        match by {
            Version::V1_1_2 => &self.cni_version_1_1,
            Version::V1_3_1 => &self.cni_version_1_3,
        }
    }

    /// The entries of `plugins`, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries that libcni 1.3 appends from drop-ins, in order.
    pub fn drop_ins(&self) -> &[DropInEntry] {
        &self.drop_ins
    }

    /// Our entries among [`Self::entries`].
    pub fn ours(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_ours())
    }

    /// Whether nothing in it but `loopback` gives a pod a network: no list to chain to (I04).
    pub fn is_loopback_only(&self) -> bool {
        let foreign = self.entries.iter().filter(|entry| !entry.is_ours());
        let mut types = foreign
            .map(|entry| &entry.plugin_type)
            .chain(self.drop_ins.iter().map(|entry| &entry.plugin_type));
        let mut any = false;
        types.all(|name| {
            any = true;
            name == "loopback"
        }) && any
    }

    /// The bytes of an entry, as they stand in the file.
    pub fn text(&self, entry: &Entry) -> &[u8] {
        self.bytes().get(entry.span.clone()).unwrap_or_default()
    }

    pub(crate) fn taken(&self) -> Taken {
        self.taken
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// The array of `plugins` and its elements, as many as [`Self::entries`]; nothing for a single configuration.
    pub(crate) fn array(&self) -> Option<(Node, &[Node])> {
        self.array.map(|array| (array, self.nodes.as_slice()))
    }
}

#[cfg(test)]
mod tests;
