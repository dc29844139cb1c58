//! The plugin's binary: read once, compared by its hash, copied durably and read back (I01, C10).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aether_domain::text::sha256;
use aether_durable::Attributes;
use aether_durable::atomic::{self, Replaced, WriteError};
use aether_durable::read::{self, ReadError};

/// The largest binary that is copied, in bytes. Ours is a small static program; this only bounds a mistake.
const MAX: usize = 256 * 1024 * 1024;
/// The binary's mode.
const MODE: u32 = 0o755;

/// Why the binary is not installed.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// There is none to install.
    #[error("there is no plugin at {0} to install: give --plugin-source")]
    NoSource(PathBuf),
    /// The file to install is empty.
    #[error("the plugin to install, {0}, is empty: the image or the build is broken; give --plugin-source")]
    EmptySource(PathBuf),
    /// It cannot be read.
    #[error("cannot read the plugin's binary")]
    Read(#[from] ReadError),
    /// It cannot be written.
    #[error("cannot install the plugin's binary")]
    Write(#[from] WriteError),
    /// What was written is gone again.
    #[error("{0} was written and is gone again: another program removes it")]
    Gone(PathBuf),
    /// What was written is not what is read back.
    #[error(
        "{path} was written with SHA-256 {written} and reads back as {found}: another program writes it, or the disk is failing"
    )]
    Mismatch {
        /// The binary.
        path: PathBuf,
        /// The hash of what was written.
        written: String,
        /// The hash of what is there.
        found: String,
    },
}

/// The binary to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    bytes: Vec<u8>,
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
}

/// The plugin as it lies on the node, beside the one that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// The directory of plugins does not exist.
    NoDirectory,
    /// There is no binary.
    Missing,
    /// It is the wanted one, and can be run.
    Identical,
    /// It is another one, or has another mode.
    Different,
}

/// Reads the binary to install.
pub fn source(path: &Path) -> Result<Source, BinaryError> {
    let bytes = read::bounded(path, MAX)?.ok_or_else(|| BinaryError::NoSource(path.to_owned()))?;
    if bytes.is_empty() {
        return Err(BinaryError::EmptySource(path.to_owned()));
    }
    let sha256 = sha256(&bytes);
    Ok(Source { bytes, sha256 })
}

/// Compares what lies at `path` with the binary of that hash.
pub fn compare(path: &Path, wanted: &str) -> Result<Plugin, BinaryError> {
    if !path.parent().is_some_and(Path::is_dir) {
        return Ok(Plugin::NoDirectory);
    }
    // A directory of that name, or a binary beyond all bounds, is in the way: the write says so.
    let (found, meta) = match (read::bounded(path, MAX), std::fs::metadata(path)) {
        (Ok(Some(bytes)), Ok(meta)) => (sha256(&bytes), meta),
        (Ok(None), _) | (Ok(Some(_)), Err(_)) => return Ok(Plugin::Missing),
        (Err(ReadError::NotAFile { .. } | ReadError::TooLarge { .. }), _) => return Ok(Plugin::Different),
        (Err(error), _) => return Err(error.into()),
    };
    // Its owner must be able to run and others to read it; more bits than ours are nobody's harm.
    Ok(if found == wanted && meta.mode() & MODE == MODE { Plugin::Identical } else { Plugin::Different })
}

/// Puts the binary at `path` if `still` says so, and reads it back.
pub fn install(path: &Path, source: &Source, still: impl FnOnce() -> bool) -> Result<Replaced, BinaryError> {
    if atomic::replace_when(path, &source.bytes, &Attributes::with_mode(MODE), still)? == Replaced::No {
        return Ok(Replaced::No);
    }
    let bytes = read::bounded(path, MAX)?.ok_or_else(|| BinaryError::Gone(path.to_owned()))?;
    let found = sha256(&bytes);
    if found == source.sha256 {
        Ok(Replaced::Yes)
    } else {
        Err(BinaryError::Mismatch { path: path.to_owned(), written: source.sha256.clone(), found })
    }
}
