//! Why an install is refused. Each text says what was found, where, and what to do.

use std::path::PathBuf;

use aether_conflist::derived::DeriveError;
use aether_conflist::edit::EditError;
use aether_domain::ids::InstallId;
use aether_list_keeper::links::LinkError;

use crate::exit::Exit;

/// A rule forbids the install, or what it depends on cannot be read. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The marker names this or a later install (I01).
    #[error(
        "this node was uninstalled: {marker} names the install {removed}, and {id} is that or an earlier one, so it is \
         not put back (a restarted init container must not undo an uninstall); to install again, use a later \
         --install-id or --force"
    )]
    Uninstalled {
        /// The marker.
        marker: PathBuf,
        /// What it names.
        removed: InstallId,
        /// This install.
        id: InstallId,
    },
    /// There is a marker that names no install.
    #[error(
        "this node was uninstalled: {marker} stands, but {why}, so it is unknown whether {id} is a later install; to \
         install again, use --force"
    )]
    UninstalledUnknown {
        /// The marker.
        marker: PathBuf,
        /// Why it names none.
        why: String,
        /// This install.
        id: InstallId,
    },
    /// A newer release wrote the wanted state (S02).
    #[error(
        "{path} was written by a newer release (format {format}, whose oldest reader is {oldest_reader}; this one reads \
         {}); install that release, or go back on purpose with --force",
        aether_domain::wanted::READER
    )]
    NewerWanted {
        /// The wanted state.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The oldest reader it allows.
        oldest_reader: u32,
    },
    /// No list can be derived from the first file (I06, I13).
    #[error("the runtime loads {path}, which holds a single plugin and no list to chain to")]
    Derive {
        /// The file.
        path: PathBuf,
        /// Why none is derived.
        #[source]
        source: DeriveError,
    },
    /// The chosen file is a symbolic link that leads too far (I02).
    #[error("the runtime loads a list that is not edited")]
    Link(#[source] LinkError),
    /// The edit itself refuses (A11, I04).
    #[error("{path} is not edited")]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EditError,
    },
    /// It cannot be told what the runtime loads.
    #[error(
        "cannot tell what the runtime loads: {path} cannot be read: {why}; run as root, with the directory mounted"
    )]
    Unreadable {
        /// What cannot be read.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl Refusal {
    /// How the program ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreadable { .. } => Exit::Failed,
            Self::Uninstalled { .. }
            | Self::UninstalledUnknown { .. }
            | Self::NewerWanted { .. }
            | Self::Derive { .. }
            | Self::Link(_)
            | Self::Edit { .. } => Exit::Refused,
        }
    }
}
