//! The list that is derived from a single plugin's configuration, which is never edited itself (I06).
//!
//! `10-bridge.conf` becomes `00-aether-10-bridge.conf.conflist`: the network's name and CNI version, the configuration's
//! object byte for byte, and our entry. Every choice looks past such lists: what counts is the first file that is
//! somebody else's.

use std::ffi::{OsStr, OsString};

use crate::edit::{self, EditError};
use crate::load::{self, DropIns, Entry, Kind, List};
use crate::own::OwnEntry;
use crate::{json, libcni};

/// How a derived list's name begins.
pub const PREFIX: &str = "00-aether-";
/// The longest name of a file, in bytes.
const NAME_MAX: usize = 255;
/// The plugins of a first network that hands pods on by itself. `error-cni` is what OpenShift lays down until Multus
/// is there (I13).
const DELEGATING: [&str; 3] = ["multus", "multus-shim", "error-cni"];

/// What a look at the directory's names tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// The file that the runtime loads.
    pub loaded: Option<OsString>,
    /// The first file that is no derived list: what the runtime would load without us (I04, C05).
    pub first: Option<OsString>,
    /// The derived lists, in order.
    pub derived: Vec<OsString>,
}

impl Choice {
    /// The derived lists that have no business there: all but the one of [`Self::first`].
    pub fn stale(&self) -> impl Iterator<Item = &OsString> {
        let right = self.first.as_deref().and_then(name_for);
        self.derived.iter().filter(move |name| right.as_ref() != Some(name))
    }

    /// Whether the runtime loads a derived list that is not that of [`Self::first`].
    pub fn loads_stale(&self) -> bool {
        self.loaded.as_ref().is_some_and(|loaded| self.stale().any(|stale| stale == loaded))
    }
}

/// Chooses among everything in the directory that is not a directory itself.
///
/// ```
/// use aether_conflist::derived::choose;
/// let choice = choose(["10-bridge.conf", "00-aether-10-bridge.conf.conflist", "20-x.conflist"]);
/// assert_eq!(choice.loaded.as_deref(), Some("00-aether-10-bridge.conf.conflist".as_ref()));
/// assert_eq!(choice.first.as_deref(), Some("10-bridge.conf".as_ref()));
/// ```
pub fn choose<N: AsRef<OsStr>>(names: impl IntoIterator<Item = N>) -> Choice {
    let order = load::candidates(names);
    let loaded = order.first().cloned();
    let (derived, foreign): (Vec<_>, Vec<_>) = order.into_iter().partition(|name| is_derived(name));
    Choice { loaded, first: foreign.into_iter().next(), derived }
}

/// The names that the runtime looks at, in its order, without derived lists.
pub fn foreign<N: AsRef<OsStr>>(names: impl IntoIterator<Item = N>) -> Vec<OsString> {
    load::candidates(names).into_iter().filter(|name| !is_derived(name)).collect()
}

/// Whether a file of this name is a derived list.
pub fn is_derived(name: &OsStr) -> bool {
    source_of(name).is_some()
}

/// The name of the configuration that a list of this name is derived from.
pub fn source_of(name: &OsStr) -> Option<&OsStr> {
    let inner = name.as_encoded_bytes().strip_prefix(PREFIX.as_bytes())?;
    let inner = inner.strip_suffix(load::LIST_ENDING.as_bytes())?;
    // Our own prefix and ending are ASCII, so that what lies between is a name as well.
    let inner = os_str(inner);
    (load::is_candidate(inner) && load::kind_of(inner) == Kind::Single).then_some(inner)
}

/// The name of the list that is derived from the configuration `source`; `None` where no such name sorts before it, or
/// it would be too long, or where `source` is itself a list.
pub fn name_for(source: &OsStr) -> Option<OsString> {
    if !load::is_candidate(source) || load::kind_of(source) != Kind::Single {
        return None;
    }
    let mut name = OsString::from(PREFIX);
    name.push(source);
    name.push(load::LIST_ENDING);
    let first = name.as_encoded_bytes() < source.as_encoded_bytes();
    (first && name.len() <= NAME_MAX).then_some(name)
}

/// Why no list is derived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeriveError {
    /// It is a list already.
    #[error("{file} is a list, from which none is derived")]
    NotSingle {
        /// The file.
        file: String,
    },
    /// Multus, as OpenShift runs it (I13).
    #[error(
        "{file} hands every pod to {plugin:?} (Multus, as OpenShift runs it); a first network like this cannot be chained \
         to, and this platform is not supported: have Multus call a chained list, or remove Multus as the first network"
    )]
    Delegating {
        /// The file.
        file: String,
        /// Its plugin.
        plugin: String,
    },
    /// No name of ours sorts first (I06).
    #[error(
        "{file} holds the single plugin {plugin:?} and no list to chain to, and a list derived from it would not be loaded, \
         because {PREFIX}{file}{} {why}: rename {file}, or have its owner write a list",
        load::LIST_ENDING
    )]
    NoName {
        /// The file.
        file: String,
        /// Its plugin.
        plugin: String,
        /// What is wrong with the name.
        why: &'static str,
    },
    /// Our entry does not go in.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// libcni would not take the list.
    #[error("the list derived from {file} would not be taken by libcni: {reason}")]
    Unsound {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
}

/// The list derived from `source`, with `own` in it. Entries that others put into the `existing` one are kept, and one
/// that is right comes back byte for byte.
pub fn derive(source: &List, existing: Option<&List>, own: &OwnEntry) -> Result<Vec<u8>, DeriveError> {
    let (name, plugin) = prepare(source)?;
    if let Some(list) = existing.filter(|list| is_current(list, source)) {
        return Ok(edit::put(list, own)?);
    }
    let bytes = compose(source, plugin, existing);
    let list = List::load(&name, bytes, DropIns::none()).map_err(|refusal| DeriveError::Unsound {
        file: source.file_name().display().to_string(),
        reason: refusal.reason,
    })?;
    Ok(edit::put(&list, own)?)
}

/// Whether a list can be derived from `source`.
pub fn can_derive(source: &List) -> Result<(), DeriveError> {
    prepare(source).map(|_| ())
}

/// The derived list's name, and the source's plugin.
fn prepare(source: &List) -> Result<(OsString, &Entry), DeriveError> {
    let file = || source.file_name().display().to_string();
    let plugin = match source.entries() {
        [plugin] if source.kind() == Kind::Single => plugin,
        _ => return Err(DeriveError::NotSingle { file: file() }),
    };
    let plugin_type = plugin.plugin_type.clone();
    if DELEGATING.contains(&plugin_type.as_str()) {
        return Err(DeriveError::Delegating { file: file(), plugin: plugin_type });
    }
    if plugin.is_ours() {
        return Err(EditError::OnlyOurs { file: file() }.into());
    }
    if source.is_loopback_only() {
        return Err(EditError::LoopbackOnly { file: file() }.into());
    }
    let Some(name) = name_for(source.file_name()) else {
        let long = PREFIX.len() + source.file_name().len() + load::LIST_ENDING.len() > NAME_MAX;
        let why = if long { "is too long for a file's name" } else { "does not sort before it" };
        return Err(DeriveError::NoName { file: file(), plugin: plugin_type, why });
    };
    Ok((name, plugin))
}

/// Whether `derived` is what `source` says today: name, version and plugin. Entries beside it do not matter.
pub fn is_current(derived: &List, source: &List) -> bool {
    let version = |list: &List| {
        let of = |by| list.cni_version(by).to_owned();
        (of(libcni::Version::V1_1_2), of(libcni::Version::V1_3_1))
    };
    let plugin = source.entries().first().map(|entry| &entry.canonical);
    derived.name() == source.name()
        && version(derived) == version(source)
        && plugin.is_some_and(|plugin| derived.entries().iter().any(|entry| entry.canonical == *plugin))
}

/// The list without our entry.
fn compose(source: &List, plugin: &Entry, existing: Option<&List>) -> Vec<u8> {
    let mut bytes = b"{\n  \"name\": ".to_vec();
    json::quote(&mut bytes, source.name());
    let version = source.cni_version(libcni::Version::V1_1_2);
    if !version.is_empty() {
        bytes.extend_from_slice(b",\n  \"cniVersion\": ");
        json::quote(&mut bytes, version);
    }
    // To a single configuration libcni 1.3 appends no drop-ins; nor does it to this.
    bytes.extend_from_slice(b",\n  \"loadOnlyInlinedPlugins\": true,\n  \"plugins\": [\n    ");
    bytes.extend_from_slice(source.text(plugin));
    for entry in existing.into_iter().flat_map(|list| others(list, plugin)) {
        bytes.extend_from_slice(b",\n    ");
        bytes.extend_from_slice(existing.map_or(&[][..], |list| list.text(entry)));
    }
    bytes.extend_from_slice(b"\n  ]\n}\n");
    bytes
}

/// The entries of a derived list that others put there: all but ours and the one that stands for the source, which is
/// the first of its type, or else the first.
fn others<'a>(list: &'a List, plugin: &Entry) -> impl Iterator<Item = &'a Entry> {
    let entries: Vec<&Entry> = list.entries().iter().filter(|entry| !entry.is_ours()).collect();
    let stands = entries.iter().position(|entry| entry.plugin_type == plugin.plugin_type).unwrap_or(0);
    entries.into_iter().enumerate().filter(move |(index, _)| *index != stands).map(|(_, entry)| entry)
}

#[cfg(unix)]
fn os_str(bytes: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(bytes)
}

/// In a WebAssembly module names are text.
#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> &OsStr {
    OsStr::new(std::str::from_utf8(bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests;
