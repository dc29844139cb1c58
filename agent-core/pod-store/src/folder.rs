//! Reading a folder of our files. It changes nothing: what is to become of what it finds is the caller's matter.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aether_domain::format::{Format, Parsed, parse};
use aether_domain::limits::STATE_FILE_MAX;
use aether_domain::paths::TEMP_PREFIX;
use aether_durable::mark::Look;
use aether_durable::read::{self, ReadError};
use serde::de::DeserializeOwned;

use crate::quarantine;
use crate::rested::Known;

/// What such a folder holds: the names, the format's version, and the name that a content must have.
pub(crate) struct Kind<T> {
    pub(crate) reader: u32,
    pub(crate) suffix: &'static str,
    pub(crate) name_of: fn(&T) -> String,
}

/// A folder's files, sorted by name.
pub(crate) struct Folder<T> {
    pub(crate) good: Vec<(OsString, Arc<T>)>,
    pub(crate) newer: Vec<(OsString, Format)>,
    pub(crate) damaged: Vec<(OsString, String)>,
    /// Not ours, or not readable now: they stay.
    pub(crate) foreign: Vec<(OsString, String)>,
    pub(crate) quarantined: Vec<OsString>,
}

/// A folder that cannot be listed.
#[derive(Debug, thiserror::Error)]
#[error("cannot list {path}; without it no pod can be served, make it a readable directory")]
pub struct ListError {
    /// The folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: std::io::Error,
}

/// Reads the folder; one that is not there is empty. Of `known` files nothing is read but whether they are the same; they
/// are those of this time afterwards.
pub(crate) fn read<T: DeserializeOwned>(
    directory: &Path,
    kind: &Kind<T>,
    known: &mut Known<T>,
) -> Result<Folder<T>, ListError> {
    let failed = |source| ListError { path: directory.to_owned(), source };
    let mut folder = Folder {
        good: Vec::new(),
        newer: Vec::new(),
        damaged: Vec::new(),
        foreign: Vec::new(),
        quarantined: Vec::new(),
    };
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(folder),
        other => other.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        found.push((entry.file_name(), entry.file_type().is_ok_and(|kind| kind.is_file())));
    }
    found.sort();
    let mut before = std::mem::take(known);
    for (name, is_file) in found {
        folder.sort_in(directory, name, is_file, kind, (&mut before, known));
    }
    Ok(folder)
}

/// Whether the folder holds the known files and nothing else but what is still being written.
pub(crate) fn is_known<T>(directory: &Path, known: &Known<T>) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    let mut count = 0;
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        if name.as_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            continue;
        }
        if !known.holds(&name, Look::at(&entry.path())) {
            return false;
        }
        count += 1;
    }
    count == known.len()
}

impl<T: DeserializeOwned> Folder<T> {
    fn sort_in(
        &mut self,
        directory: &Path,
        name: OsString,
        is_file: bool,
        kind: &Kind<T>,
        (before, known): (&mut Known<T>, &mut Known<T>),
    ) {
        let shown = name.to_string_lossy();
        if shown.starts_with(TEMP_PREFIX) {
            return;
        }
        if quarantine::put_aside_at(&name).is_some() {
            self.quarantined.push(name);
            return;
        }
        if !is_file {
            self.foreign.push((name, "it is no regular file".to_owned()));
            return;
        }
        if !shown.ends_with(kind.suffix) || shown.starts_with('.') {
            self.foreign.push((name, "its name is none of ours".to_owned()));
            return;
        }
        let path = directory.join(&name);
        // Before the read: whatever changes the file behind it changes its mark.
        let look = Look::at(&path);
        if let Some(value) = before.take(&name, look) {
            known.keep(name.clone(), look, Arc::clone(&value));
            self.good.push((name, value));
            return;
        }
        let bytes = match read::bounded(&path, STATE_FILE_MAX) {
            Ok(Some(bytes)) => bytes,
            // Gone since it was listed.
            Ok(None) => return,
            Err(ReadError::TooLarge { max, .. }) => {
                self.damaged.push((name, format!("it is larger than {max} bytes")));
                return;
            }
            // The disk or the kernel, not the content: it may be readable next time.
            Err(ReadError::Io { source, .. }) => {
                self.foreign.push((name, format!("it cannot be read: {source}")));
                return;
            }
            Err(ReadError::NotAFile { .. }) => {
                self.foreign.push((name, "it is no regular file".to_owned()));
                return;
            }
        };
        match parse::<T>(&bytes, kind.reader) {
            Parsed::Newer(format) => self.newer.push((name, format)),
            Parsed::Damaged(why) => self.damaged.push((name, why)),
            Parsed::Good(value) => {
                let expected = (kind.name_of)(&value);
                if name == *expected {
                    let value = Arc::new(value);
                    known.keep(name.clone(), look, Arc::clone(&value));
                    self.good.push((name, value));
                } else {
                    self.damaged.push((name, format!("its content belongs into a file named {expected}")));
                }
            }
        }
    }
}
