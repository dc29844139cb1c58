//! What an install does, decided from what was found (I01, I04, I05, I07, I10). Pure.

use std::ffi::OsString;
use std::path::PathBuf;

use aether_conflist::chain::Names;
use aether_conflist::derived;
use aether_conflist::edit::{self, EditError};
use aether_conflist::load::{By, Content, DropIns, Kind, List};
use aether_conflist::own::OwnEntry;
use aether_domain::format::{Format, Parsed};
use aether_domain::wanted::Wanted;
use aether_list_keeper::derive::Derivation;
use aether_list_keeper::links::LinkError;

use crate::config::{Force, Install, Places};
use crate::found::{Found, Plugin};
use crate::install_id;
use crate::refusal::Refusal;
use crate::waiting::Missing;

mod choice;
pub use choice::Choice;

/// The steps of an install, in the order in which they are taken (I01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The plugin's binary.
    pub binary: Step,
    /// The wanted state, as bytes.
    pub wanted: Write,
    /// The marker, removed.
    pub marker: Step,
    /// The list.
    pub list: ListStep,
    /// Derived lists that go, once the list holds our entry (I06).
    pub stale: Vec<OsString>,
}

/// A step that has no content of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is done already.
    Already,
    /// It is to be done.
    Do,
    /// It cannot be done yet.
    NotYet,
}

/// A file of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// It says that already.
    Already,
    /// These bytes.
    Bytes(Vec<u8>),
    /// It cannot be written yet.
    NotYet,
}

/// The list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListStep {
    /// It holds our entry, once.
    Already(Choice),
    /// It gets it.
    Edit {
        /// The file, and why it is this one.
        choice: Choice,
        /// What it holds.
        old: Vec<u8>,
        /// What it will hold.
        new: Vec<u8>,
    },
    /// A list is derived, since the file holds a single plugin's configuration (I06).
    Derive {
        /// The configuration, and why it is this one.
        choice: Choice,
        /// What to write.
        derivation: Derivation,
    },
    /// There is none to take yet.
    Wait(Missing),
}

/// Decides. `sha256` is the plugin to install, `own` the entry.
pub fn install(
    places: &Places,
    order: &Install,
    own: &OwnEntry,
    sha256: &str,
    force: Force,
    found: &Found,
) -> Result<Plan, Refusal> {
    allowed(places, order, force, found)?;
    let list = list(places, own, &found.net)?;
    // Where a directory is missing, the places themselves are in doubt: nothing is begun.
    let doubt = match &list {
        ListStep::Wait(missing @ Missing::ConfDir(_)) => Some(missing.clone()),
        ListStep::Wait(_) | ListStep::Already(_) | ListStep::Edit { .. } | ListStep::Derive { .. } => {
            (found.plugin == Plugin::NoDirectory).then(|| Missing::BinDir(places.bin_dir.clone()))
        }
    };
    if let Some(missing) = doubt {
        return Ok(Plan {
            binary: Step::NotYet,
            wanted: Write::NotYet,
            marker: Step::NotYet,
            list: ListStep::Wait(missing),
            stale: Vec::new(),
        });
    }
    let binary = if found.plugin == Plugin::Identical { Step::Already } else { Step::Do };
    let wanted = serde_json::to_vec_pretty(&wanted(order, sha256, found))
        .map_err(|error| Refusal::Unreadable { path: places.wanted(), why: error.to_string() })?;
    let wanted = if found.wanted.as_ref().is_some_and(|kept| kept.bytes == wanted) {
        Write::Already
    } else {
        Write::Bytes(wanted)
    };
    let marker = if found.marker.is_some() { Step::Do } else { Step::Already };
    let stale = match &list {
        // What comes first is not ready: the derived list goes on until it is.
        ListStep::Wait(missing) if !matches!(missing, Missing::NoList(_)) => Vec::new(),
        _ => found.net.choice.stale().cloned().collect(),
    };
    Ok(Plan { binary, wanted, marker, list, stale })
}

/// Whether this install may be done at all.
fn allowed(places: &Places, order: &Install, force: Force, found: &Found) -> Result<(), Refusal> {
    if force == Force::Yes {
        return Ok(());
    }
    if let Some(marker) = &found.marker {
        let unknown = |why: &str| Refusal::UninstalledUnknown {
            marker: places.marker(),
            why: why.to_owned(),
            id: order.id.clone(),
        };
        match &marker.parsed {
            Parsed::Newer(_) => return Err(unknown("a newer release wrote it")),
            Parsed::Damaged(why) => return Err(unknown(&format!("it is damaged ({why})"))),
            Parsed::Good(content) => match &content.install_id {
                None => return Err(unknown("it names no install")),
                Some(removed) if install_id::same_or_earlier(&order.id, removed) => {
                    return Err(Refusal::Uninstalled {
                        marker: places.marker(),
                        removed: removed.clone(),
                        id: order.id.clone(),
                    });
                }
                Some(_) => {}
            },
        }
    }
    match found.wanted.as_ref().map(|kept| &kept.parsed) {
        Some(Parsed::Newer(format)) => Err(Refusal::NewerWanted {
            path: places.wanted(),
            format: format.format,
            oldest_reader: format.oldest_reader,
        }),
        Some(Parsed::Good(_) | Parsed::Damaged(_)) | None => Ok(()),
    }
}

/// The wanted state. The time of the first install is kept, also out of a file that is otherwise damaged.
fn wanted(order: &Install, sha256: &str, found: &Found) -> Wanted {
    let first = found.wanted.as_ref().and_then(|kept| match &kept.parsed {
        Parsed::Good(wanted) => Some(wanted.first_installed),
        Parsed::Newer(_) | Parsed::Damaged(_) => {
            let value: Option<serde_json::Value> = serde_json::from_slice(&kept.bytes).ok();
            value.and_then(|value| value.get("firstInstalled")?.as_u64())
        }
    });
    Wanted {
        format: Format::V1,
        entry: order.entry.value.clone(),
        plugin_sha256: sha256.to_owned(),
        install_id: order.id.clone(),
        first_installed: first.map_or(found.now, |first| first.min(found.now)),
    }
}

/// What becomes of the list.
pub(crate) fn list(places: &Places, own: &OwnEntry, net: &crate::found::Net) -> Result<ListStep, Refusal> {
    match &net.names {
        Names::Listed(_) => {}
        Names::Missing => return Ok(ListStep::Wait(Missing::ConfDir(places.conf_dir.clone()))),
        Names::Unread(why) => {
            return Err(Refusal::Unreadable { path: places.conf_dir.clone(), why: why.clone() });
        }
    }
    let Some(first) = net.candidates.first() else {
        return Ok(ListStep::Wait(Missing::NoList(places.conf_dir.clone())));
    };
    let path = places.conf_dir.join(&first.file_name);
    if let Some(expected) = places.conf_name.as_ref().filter(|name| first.file_name != name.as_str()) {
        return Ok(ListStep::Wait(Missing::Unexpected { found: path, expected: expected.clone() }));
    }
    if let Some(link @ LinkError::Outside { .. }) = &net.link {
        return Err(Refusal::Link(link.clone()));
    }
    let bytes = match &first.content {
        Content::Bytes(bytes) => bytes,
        Content::Broken(why) => return Ok(ListStep::Wait(Missing::Invalid { path, why: why.clone() })),
        Content::Unread(why) => return Err(Refusal::Unreadable { path, why: why.clone() }),
    };
    let list = match List::load(&first.file_name, bytes.clone(), first.drop_ins.clone()) {
        Ok(list) => list,
        Err(refusal) if refusal.by == By::Us => {
            return Err(Refusal::Unreadable {
                path: places.conf_dir.join(&refusal.file),
                why: refusal.reason,
            });
        }
        Err(refusal) => return Ok(ListStep::Wait(Missing::Invalid { path, why: refusal.to_string() })),
    };
    if list.is_loopback_only() {
        return Ok(ListStep::Wait(Missing::LoopbackOnly(path)));
    }
    if list.kind() == Kind::Single {
        return derive(path, &list, own, net);
    }
    let new = match edit::put(&list, own) {
        Ok(new) => new,
        Err(EditError::LoopbackOnly { .. }) => return Ok(ListStep::Wait(Missing::LoopbackOnly(path))),
        Err(source) => return Err(Refusal::Edit { path, source }),
    };
    let choice = Choice::of(path, net.count);
    if new == *bytes {
        return Ok(ListStep::Already(choice));
    }
    Ok(ListStep::Edit { choice, old: bytes.clone(), new })
}

/// What becomes of the list that is derived from a single plugin's configuration.
fn derive(
    path: PathBuf,
    source: &List,
    own: &OwnEntry,
    net: &crate::found::Net,
) -> Result<ListStep, Refusal> {
    let name = derived::name_for(source.file_name()).unwrap_or_default();
    let old = match net.existing.as_ref().map(|existing| &existing.content) {
        Some(Content::Bytes(bytes)) => Some(bytes.clone()),
        Some(Content::Unread(why)) => {
            return Err(Refusal::Unreadable { path: path.with_file_name(name), why: why.clone() });
        }
        Some(Content::Broken(_)) | None => None,
    };
    let existing = old.as_ref().and_then(|old| List::load(&name, old.as_slice(), DropIns::none()).ok());
    let new = match derived::derive(source, existing.as_ref(), own) {
        Ok(new) => new,
        Err(source) => return Err(Refusal::Derive { path, source }),
    };
    let choice = Choice::of(path, net.count);
    if old.as_ref() == Some(&new) {
        return Ok(ListStep::Already(choice.derived(name)));
    }
    let derivation = Derivation {
        source: source.file_name().to_owned(),
        source_bytes: source.bytes().to_vec(),
        name,
        old,
        new,
    };
    Ok(ListStep::Derive { choice, derivation })
}

#[cfg(test)]
mod tests;
