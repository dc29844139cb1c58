//! The record files: their names, their bytes, and writing them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use aether_domain::key::Key;
use aether_domain::limits::STATE_FILE_MAX;
use aether_domain::paths::RECORD_SUFFIX;
use aether_domain::record::{self, Record};
use aether_domain::text::error_chain;
use aether_domain::tombstone::{self, Tombstone};
use aether_durable::Attributes;
use aether_durable::atomic::{self, WriteError};
use aether_durable::read;

use crate::folder::Kind;
use crate::store::Inner;

/// Records are the owner's alone: annotations may hold what pods must not see of each other.
const RECORD_MODE: u32 = 0o600;
/// Folders of the state directory (O04).
pub(crate) const FOLDER_MODE: u32 = 0o700;

pub(crate) const RECORDS: Kind<Record> =
    Kind { reader: record::READER, suffix: RECORD_SUFFIX, name_of: |record| record_name(&record.key) };
pub(crate) const TOMBSTONES: Kind<Tombstone> =
    Kind { reader: tombstone::READER, suffix: "", name_of: Tombstone::file_name };

pub(crate) fn record_name(key: &Key) -> String {
    key.file_stem() + RECORD_SUFFIX
}

/// A record's bytes, ending in a newline for the person who looks at it.
pub(crate) fn record_bytes(record: &Record) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = serde_json::to_vec_pretty(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Why a record was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot write the record as JSON")]
    Json(#[from] serde_json::Error),
}

impl Inner {
    pub(crate) fn record_path(&self, key: &Key) -> PathBuf {
        self.pods.join(record_name(key))
    }

    /// Writes a record in place of `before`. An error leaves `before` there, as far as the disk allows.
    pub(crate) fn write(
        &self,
        record: &Record,
        bytes: &[u8],
        before: Option<&Record>,
    ) -> Result<(), RecordError> {
        let path = self.record_path(&record.key);
        let attributes = Attributes::with_mode(RECORD_MODE);
        let mut result = atomic::replace(&path, bytes, &attributes);
        if matches!(&result, Err(error) if error.source.kind() == std::io::ErrorKind::NotFound) {
            // Somebody removed the folder under us. With it went every record; this one need not be lost as well.
            self.make_folders()?;
            result = atomic::replace(&path, bytes, &attributes);
        }
        let Err(error) = result else { return Ok(()) };
        self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
        // Renamed, but perhaps not for good (the directory's fsync failed): an ADD that fails leaves no record.
        if matches!(read::bounded(&path, STATE_FILE_MAX), Ok(Some(found)) if found == bytes)
            && let Err(second) = self.put_back(&record.key, before)
        {
            tracing::error!(
                key = %record.key, error = %error_chain(&second),
                "a record that could not be made durable could not be taken back either; a DEL or the sweep removes it",
            );
        }
        Err(error.into())
    }

    /// Puts what another call had recorded back, or removes the record where there was none.
    pub(crate) fn put_back(&self, key: &Key, before: Option<&Record>) -> Result<(), RecordError> {
        let path = self.record_path(key);
        match before {
            None => atomic::remove(&path).map(|_| ())?,
            Some(before) => {
                atomic::replace(&path, &record_bytes(before)?, &Attributes::with_mode(RECORD_MODE))?;
            }
        }
        Ok(())
    }

    /// Removes the records of `keys` with one flush of the directory.
    pub(crate) fn remove_records<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Key>,
    ) -> Result<(), WriteError> {
        let names: Vec<OsString> = keys.into_iter().map(|key| record_name(key).into()).collect();
        if names.is_empty() {
            return Ok(());
        }
        match atomic::remove_all(&self.pods, &names) {
            Ok(_) => Ok(()),
            Err(error) => {
                self.counters.write_failures.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    pub(crate) fn make_folders(&self) -> Result<(), WriteError> {
        for folder in [&self.state_dir, &self.pods, &self.deletes] {
            atomic::create_dir_all(folder, FOLDER_MODE)?;
        }
        Ok(())
    }
}
