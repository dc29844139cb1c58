//! Why an install is refused. Each text says what was found, where, and what to do.

use std::path::PathBuf;

use aether_conflist::edit::EditError;
use aether_domain::ids::InstallId;

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
    /// The first file is a single plugin's configuration (I06).
    #[error(
        "the runtime loads {path}, which holds the single plugin {plugin:?} and no list to chain to; this release does \
         not derive a list from it: write it as a list ({{\"name\":..,\"plugins\":[..]}}) in a file with the ending \
         .conflist that sorts before it, or have its owner do so"
    )]
    Single {
        /// The file.
        path: PathBuf,
        /// Its plugin.
        plugin: String,
    },
    /// The first network is Multus's, as OpenShift runs it (I13).
    #[error(
        "the runtime loads {path}, which hands every pod to {plugin:?} (Multus, as OpenShift runs it); a first network \
         like this cannot be chained to, and this platform is not supported: have Multus call a chained list, or \
         remove Multus as the first network"
    )]
    Multus {
        /// The file.
        path: PathBuf,
        /// Its plugin.
        plugin: String,
    },
    /// The chosen file is a symbolic link (I02).
    #[error(
        "the runtime loads {path}, which is a symbolic link to {target}; this release does not edit a list through a \
         link: put the file itself into the directory in the link's place"
    )]
    Symlink {
        /// The link.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
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
            | Self::Single { .. }
            | Self::Multus { .. }
            | Self::Symlink { .. }
            | Self::Edit { .. } => Exit::Refused,
        }
    }
}
