//! What each of the two versions of libcni makes of a file, with the go-cni that calls it.
//!
//! A list is read into a map first: keys count exactly as written, of equal ones the last, and every number must fit a
//! float64. Each entry is then written out again, its keys sorted, and read into a struct, whose fields take any
//! case of their name. A single configuration goes into the struct as it stands.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::json::{Document, Kind, MAX_DEPTH, Node};
use crate::load::{Content, DROP_IN_ENDING, DropIn};

mod directory;
mod plugin;
mod version;

pub(crate) use plugin::Plugin;

/// A version of libcni, with the go-cni that calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// libcni 1.1.2, as in containerd 1.
    V1_1_2,
    /// libcni 1.3.1, as in containerd 2.
    V1_3_1,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V1_1_2 => "libcni 1.1 (containerd 1)",
            Self::V1_3_1 => "libcni 1.3 (containerd 2)",
        })
    }
}

/// What is wrong, and where in the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) offset: Option<usize>,
    pub(crate) reason: String,
}

impl Wrong {
    fn at(document: &Document, node: Node, reason: impl Into<String>) -> Self {
        Self { offset: Some(document.span(node).start), reason: reason.into() }
    }

    fn kind(document: &Document, node: Node, what: &str, wanted: &str) -> Self {
        let found = document.kind(node).described();
        Self::at(document, node, format!("{what} is {found} where {wanted} is expected"))
    }
}

/// What one version makes of a file, drop-ins apart.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) cni_version: String,
    /// The entries of `plugins`; empty only where there is no such key.
    pub(crate) entries: Vec<(Node, Plugin)>,
    /// The array that holds them.
    pub(crate) array: Option<Node>,
    pub(crate) reads_drop_ins: bool,
}

/// Reads a `.conflist`.
pub(crate) fn list(version: Version, document: &Document) -> Result<Seen, Wrong> {
    let map = top(document)?;
    if let Some(number) = document.number_out_of_range(document.root()) {
        return Err(Wrong::at(document, number, "the number does not fit a float64"));
    }
    let name = match map.get("name") {
        None => return Err(Wrong::at(document, document.root(), "the list has no \"name\"")),
        Some(name) => text(document, *name, "the list's \"name\"")?,
    };
    let declared = match map.get("cniVersion") {
        None => String::new(),
        Some(declared) => text(document, *declared, "the list's \"cniVersion\"")?,
    };
    let (cni_version, only_inlined) = match version {
        Version::V1_1_2 => {
            if let Some(node) = map.get("disableCheck")
                && !matches!(document.kind(*node), Kind::Bool(_))
            {
                return Err(Wrong::kind(document, *node, "\"disableCheck\"", "a boolean"));
            }
            (declared, true)
        }
        Version::V1_3_1 => {
            let chosen = version::choose(document, &map, declared)?;
            flag(document, &map, "disableCheck")?;
            flag(document, &map, "disableGC")?;
            (chosen, flag(document, &map, "loadOnlyInlinedPlugins")?)
        }
    };
    let array = map.get("plugins").copied();
    let entries = match array {
        Some(array) => entries(version, document, array)?,
        None if only_inlined => {
            return Err(Wrong::at(document, document.root(), "the list has no \"plugins\""));
        }
        None => Vec::new(),
    };
    Ok(Seen { name, cni_version, entries, array, reads_drop_ins: !only_inlined })
}

/// Reads a `.conf` or `.json`: one plugin's configuration, of which go-cni makes a list.
pub(crate) fn single(version: Version, document: &Document) -> Result<Seen, Wrong> {
    let root = document.root();
    let plugin = plugin::read(document, root, version, plugin::Reading::AsItStands)?;
    // From here on as go-cni does it: into a map, into a list around it, and that is read as above.
    if let Some(number) = document.number_out_of_range(root) {
        return Err(Wrong::at(document, number, "the number does not fit a float64"));
    }
    let too_deep = document.depth() + 2 > MAX_DEPTH
        && Document::parse(&document.canonical(root)).map_or(MAX_DEPTH, |kept| kept.depth()) + 2 > MAX_DEPTH;
    if too_deep {
        let reason = format!("it is nested deeper than {MAX_DEPTH} levels once it is made a list");
        return Err(Wrong::at(document, root, reason));
    }
    let entry = plugin::read(document, root, version, plugin::Reading::Rewritten)?;
    Ok(Seen {
        name: plugin.name,
        cni_version: plugin.cni_version,
        entries: vec![(root, entry)],
        array: None,
        reads_drop_ins: false,
    })
}

/// Reads a drop-in, which only libcni 1.3 does.
pub(crate) fn drop_in(document: &Document) -> Result<Plugin, Wrong> {
    plugin::read(document, document.root(), Version::V1_3_1, plugin::Reading::AsItStands)
}

/// Reads one entry by the rules of both versions; libcni 1.3's are the stricter ones.
pub(crate) fn entry(document: &Document, node: Node) -> Result<Plugin, Wrong> {
    if let Some(number) = document.number_out_of_range(node) {
        return Err(Wrong::at(document, number, "the number does not fit a float64"));
    }
    plugin::read(document, node, Version::V1_3_1, plugin::Reading::Rewritten)
}

/// The drop-ins that libcni 1.3 reads, in its order.
pub(crate) fn sorted_drop_ins(files: Vec<DropIn>) -> Vec<DropIn> {
    let is_one = |name: &OsStr| name.as_encoded_bytes().ends_with(DROP_IN_ENDING.as_bytes());
    let mut files: Vec<DropIn> = files.into_iter().filter(|file| is_one(&file.file_name)).collect();
    files.sort_by(|a, b| a.file_name.as_encoded_bytes().cmp(b.file_name.as_encoded_bytes()));
    files
}

/// What is wrong with a drop-in's content before it is read as one.
pub(crate) fn content(content: &Content) -> Result<&[u8], (ReadBy, String)> {
    match content {
        Content::Bytes(bytes) => Ok(bytes),
        Content::Broken(why) => Err((ReadBy::Nobody, why.clone())),
        Content::Unread(why) => Err((ReadBy::NotUs, why.clone())),
    }
}

/// Who could not read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBy {
    /// Nobody can, so the runtime refuses it.
    Nobody,
    /// The runtime perhaps can.
    NotUs,
}

pub(crate) fn drop_in_dir(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> Option<PathBuf> {
    if crate::load::kind_of(file_name) == crate::load::Kind::Single {
        return None;
    }
    let document = Document::parse(bytes).ok()?;
    let seen = list(Version::V1_3_1, &document).ok()?;
    seen.reads_drop_ins.then(|| directory::join(conf_dir, &seen.name))
}

/// The outermost object as Go reads it into a map: `null` leaves the map empty.
fn top(document: &Document) -> Result<BTreeMap<String, Node>, Wrong> {
    let root = document.root();
    match document.kind(root) {
        Kind::Object | Kind::Null => Ok(document.map(root)),
        _ => Err(Wrong::kind(document, root, "the file", "an object")),
    }
}

fn text(document: &Document, node: Node, what: &str) -> Result<String, Wrong> {
    match document.kind(node) {
        Kind::String => Ok(document.text(node)),
        _ => Err(Wrong::kind(document, node, what, "a string")),
    }
}

/// A boolean of the list as libcni 1.3 reads it: a string of that meaning will do.
fn flag(document: &Document, map: &BTreeMap<String, Node>, key: &str) -> Result<bool, Wrong> {
    let Some(node) = map.get(key).copied() else { return Ok(false) };
    match document.kind(node) {
        Kind::Bool(value) => Ok(value),
        Kind::String if document.text(node).eq_ignore_ascii_case("true") => Ok(true),
        Kind::String if document.text(node).eq_ignore_ascii_case("false") => Ok(false),
        Kind::String => {
            Err(Wrong::at(document, node, format!("{key:?} is a string that says neither true nor false")))
        }
        _ => Err(Wrong::kind(document, node, &format!("{key:?}"), "a boolean")),
    }
}

fn entries(version: Version, document: &Document, array: Node) -> Result<Vec<(Node, Plugin)>, Wrong> {
    if document.kind(array) != Kind::Array {
        return Err(Wrong::kind(document, array, "\"plugins\"", "an array"));
    }
    let items = document.items(array);
    if items.is_empty() {
        return Err(Wrong::at(document, array, "\"plugins\" is empty"));
    }
    let read = |node| Ok((node, plugin::read(document, node, version, plugin::Reading::Rewritten)?));
    items.into_iter().map(read).collect()
}
