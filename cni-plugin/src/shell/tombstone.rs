//! What a DEL leaves for an agent that is away (K07), and what it reads to know whether it must.

use std::io::ErrorKind;
use std::path::Path;

use aether_domain::key::Key;
use aether_domain::tombstone::Tombstone;
use aether_domain::{limits, paths};
use aether_durable::Attributes;
use aether_durable::atomic::{self, WriteError};

use crate::invocation::Marker;
use crate::verdict::Record;

/// Why no tombstone was left. The sweep finds the record without one, later (S06).
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaveError {
    /// The bound is reached.
    #[error(
        "{} tombstones wait in {folder} already: is aether-agent running on this node?",
        limits::TOMBSTONES_MAX
    )]
    Full {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// It could not be written.
    #[error("the tombstone was not written")]
    Write(#[from] WriteError),
    /// It could not be encoded.
    #[error("the tombstone was not encoded")]
    Encode(#[from] serde_json::Error),
}

/// Whether the marker of an uninstall stands. One that cannot be looked for does not: an ADD is fail-closed.
pub(super) fn marker(state_dir: &Path) -> Marker {
    match std::fs::symlink_metadata(state_dir.join(paths::UNINSTALLED)) {
        Ok(_) => Marker::Stands,
        Err(_) => Marker::Absent,
    }
}

/// Whether a record of `key` stands.
pub(super) fn record(state_dir: &Path, key: &Key) -> Record {
    let name = format!("{}{}", key.file_stem(), paths::RECORD_SUFFIX);
    match std::fs::symlink_metadata(state_dir.join(paths::PODS).join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Record::Absent,
        _ => Record::Possible,
    }
}

/// Writes the tombstone, durably, unless the folder is full.
pub(super) fn leave(state_dir: &Path, tombstone: &Tombstone) -> Result<(), LeaveError> {
    let folder = state_dir.join(paths::DELETES);
    atomic::create_dir_all(&folder, 0o700)?;
    // What killed writers left counts too: it is as much of a burden to the disk.
    let waiting =
        std::fs::read_dir(&folder).map_or(0, |entries| entries.take(limits::TOMBSTONES_MAX).count());
    if waiting >= limits::TOMBSTONES_MAX {
        return Err(LeaveError::Full { folder });
    }
    let bytes = serde_json::to_vec(tombstone)?;
    atomic::replace(&folder.join(tombstone.file_name()), &bytes, &Attributes::with_mode(0o600))?;
    Ok(())
}
