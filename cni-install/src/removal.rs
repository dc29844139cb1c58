//! What an uninstall does, decided from what was found (I01, I14). Pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aether_conflist::chain::Names;
use aether_conflist::edit::{self, EditError};
use aether_conflist::load::{Content, DropIns, Kind, List};
use aether_domain::format::Format;
use aether_domain::paths;
use aether_domain::wanted::Marker;

use crate::config::{Binary, Force, Places, Uninstall};
use crate::found::{Candidate, Found, Plugin};
use crate::install_id;
use crate::plan::{Step, Write};

/// The steps of an uninstall, in the order in which they are taken (I01).
#[derive(Debug)]
pub struct Removal {
    /// The marker, as bytes.
    pub marker: Write,
    /// Derived lists, which go as a whole (I06).
    pub derived: Vec<OsString>,
    /// Our entry, out of each list that holds it.
    pub lists: Vec<Edit>,
    /// Where something of ours may be left. The wanted state then stays, so that what is unfinished can be seen.
    pub problems: Vec<Problem>,
    /// The wanted state, removed.
    pub wanted: Step,
    /// The binary.
    pub binary: BinaryStep,
}

/// One list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub old: Vec<u8>,
    /// What it will hold.
    pub new: Vec<u8>,
}

/// The binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryStep {
    /// It stays, as is the rule.
    Keep,
    /// It is not there.
    Absent,
    /// It goes.
    Remove,
    /// It should go, but is not the one that was installed (E6).
    KeepForeign,
    /// It should go, but a list may still name it: without it that list would give no pod a network.
    KeepNeeded,
}

/// What an uninstall cannot take away.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file names our plugin, but is one that libcni refuses.
    #[error(
        "{path} mentions {}, but is not edited because libcni refuses it: {why}; correct it, then run uninstall again",
        paths::PLUGIN
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Who refuses it, where and why.
        why: String,
    },
    /// The file cannot be read.
    #[error(
        "{path} cannot be read, so it is unknown whether it holds our entry: {why}; run uninstall again where it can"
    )]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A drop-in holds our entry; it was never ours to write.
    #[error(
        "{path}, a drop-in that containerd 2 loads, holds an entry of ours, and is never touched (I04): remove it by hand"
    )]
    DropIn {
        /// The drop-in.
        path: PathBuf,
    },
    /// The edit itself refuses.
    #[error("{path} holds our entry, but is not edited")]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EditError,
    },
}

/// Decides. The candidates in `found` are all that the runtime looks at, each with its content; `found.plugin` compares
/// the binary with the one that the wanted state names.
pub fn uninstall(places: &Places, order: &Uninstall, force: Force, found: &Found) -> Removal {
    let mut lists = Vec::new();
    let mut problems = Vec::new();
    if let Names::Unread(why) = &found.net.names {
        problems.push(Problem::Unread { path: places.conf_dir.clone(), why: why.clone() });
    }
    for file in &found.net.candidates {
        match without_ours(&places.conf_dir, file, &mut problems) {
            Ok(edit) => lists.extend(edit),
            Err(problem) => problems.push(problem),
        }
    }
    let wanted = match (&found.wanted, problems.is_empty()) {
        (None, _) => Step::Already,
        (Some(_), true) => Step::Do,
        (Some(_), false) => Step::NotYet,
    };
    let binary = match (order.binary, found.plugin) {
        (Binary::Keep, _) => BinaryStep::Keep,
        (Binary::Remove, Plugin::NoDirectory | Plugin::Missing) => BinaryStep::Absent,
        (Binary::Remove, _) if !problems.is_empty() => BinaryStep::KeepNeeded,
        (Binary::Remove, Plugin::Different) if force == Force::No => BinaryStep::KeepForeign,
        (Binary::Remove, Plugin::Different | Plugin::Identical) => BinaryStep::Remove,
    };
    let derived = found.net.choice.derived.clone();
    Removal { marker: marker(order, found), derived, lists, problems, wanted, binary }
}

/// The marker names what is removed. One that is there stays as it is, unless this call is a later one.
fn marker(order: &Uninstall, found: &Found) -> Write {
    let standing = found.marker.as_ref().and_then(|kept| kept.good());
    let installed =
        found.wanted.as_ref().and_then(|kept| kept.good()).map(|wanted| wanted.install_id.clone());
    let before = standing.and_then(|marker| marker.install_id.clone());
    let known = match (installed, before) {
        (Some(installed), before) => install_id::removed(Some(installed), before.as_ref()),
        (None, before) => before,
    };
    let id = install_id::removed(known, order.id.as_ref());
    if standing.is_some_and(|marker| marker.install_id == id) {
        return Write::Already;
    }
    let marker = Marker { format: Format::V1, install_id: id, uninstalled_at: found.now };
    // A marker counts by being there, so even one that could not be filled is written.
    Write::Bytes(serde_json::to_vec_pretty(&marker).unwrap_or_default())
}

fn without_ours(
    conf_dir: &Path,
    file: &Candidate,
    problems: &mut Vec<Problem>,
) -> Result<Option<Edit>, Problem> {
    let path = conf_dir.join(&file.file_name);
    let bytes = match &file.content {
        Content::Bytes(bytes) => bytes,
        // Nobody can read it, so nothing in it is ours.
        Content::Broken(_) => return Ok(None),
        Content::Unread(why) => return Err(Problem::Unread { path, why: why.clone() }),
    };
    let list = match List::load(&file.file_name, bytes.clone(), file.drop_ins.clone()) {
        Ok(list) => list,
        Err(refusal) if mentions_ours(bytes) => {
            return Err(Problem::Invalid { path, why: refusal.to_string() });
        }
        Err(_) => return Ok(None),
    };
    for drop_in in list.drop_ins().iter().filter(|entry| entry.is_ours()) {
        problems.push(Problem::DropIn { path: conf_dir.join(list.name()).join(&drop_in.file_name) });
    }
    if list.ours().next().is_none() {
        return Ok(None);
    }
    if list.kind() == Kind::Single {
        return Err(Problem::Edit {
            path,
            source: EditError::Single { file: file.file_name.display().to_string() },
        });
    }
    let new = edit::remove(&list).map_err(|source| Problem::Edit { path: path.clone(), source })?;
    Ok(Some(Edit { path, old: bytes.clone(), new }))
}

/// What the list at `path` becomes when it holds `bytes`; `None` while they are no list. Drop-ins do not matter.
pub fn without_ours_in(path: &Path, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let list = List::load(path.file_name()?, bytes, DropIns::none()).ok()?;
    edit::remove(&list).ok()
}

fn mentions_ours(bytes: &[u8]) -> bool {
    bytes.windows(paths::PLUGIN.len()).any(|window| window == paths::PLUGIN.as_bytes())
}

#[cfg(test)]
mod tests;
