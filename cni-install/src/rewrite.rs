//! Replacing a list that others write too (I03, C02).
//!
//! A rename is no compare-and-swap. Just before it, the path must still name the file that was inspected, unchanged.
//! After it, the replaced file is read once more through a descriptor held from before: a writer that had it open
//! (`cp -f` truncates and writes in place) may have written into it, and what it wrote is the list.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aether_domain::limits;
use aether_durable::Attributes;
use aether_durable::atomic::{self, Replaced, WriteError};

/// Why the list was not replaced; the old one stands.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// It cannot be opened.
    #[error("cannot open {path} to see whether others write it")]
    Open {
        /// The list.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It cannot be replaced.
    #[error("cannot replace the list")]
    Write(#[from] WriteError),
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// The new list stands.
    Written,
    /// The file was changed since it was inspected; nothing was done. Look again.
    Changed,
    /// The new list stands, but somebody wrote into the old one meanwhile.
    Late(Held),
}

/// The replaced file, still open.
#[derive(Debug)]
pub struct Held {
    file: File,
}

impl Held {
    /// What it holds now.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        let max = u64::try_from(limits::CONFLIST_MAX).unwrap_or(u64::MAX);
        (&self.file).take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn names(&self, path: &Path) -> bool {
        let id = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(held), Ok(named)) => id(held) == id(named),
            _ => false,
        }
    }
}

/// Replaces the list at `path`, which held `inspected`, by `new`; mode, owner and xattrs are kept (I08).
pub fn rewrite(path: &Path, inspected: &[u8], new: &[u8]) -> Result<Outcome, RewriteError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Outcome::Changed),
        Err(source) => return Err(RewriteError::Open { path: path.to_owned(), source }),
    };
    let mut held = Held { file };
    let attributes = Attributes::of(path)?;
    let unchanged = |held: &mut Held| held.read().is_ok_and(|bytes| bytes == inspected);
    let still = || held.names(path) && unchanged(&mut held);
    match atomic::replace_when(path, new, &attributes, still)? {
        Replaced::No => Ok(Outcome::Changed),
        Replaced::Yes if unchanged(&mut held) => Ok(Outcome::Written),
        Replaced::Yes => Ok(Outcome::Late(held)),
    }
}
