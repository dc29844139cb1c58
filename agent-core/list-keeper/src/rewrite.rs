//! Replacing a list that others write too (I02, I03, C02).
//!
//! A rename is no compare-and-swap. Just before it, the path must still name the file that was inspected, unchanged.
//! After it, the replaced file is looked at through a descriptor held from before, for as long as somebody has it open to
//! write: what such a writer leaves there is the list, and gets our entry in turn.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use aether_domain::limits;
use aether_durable::Attributes;
use aether_durable::atomic::{self, Replaced, WriteError};
use aether_durable::writers::{self, Writers};

use crate::links::{self, LinkError};

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
    /// It is a link that is not followed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It cannot be replaced.
    #[error("cannot replace the list")]
    Write(#[from] WriteError),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewritten {
    /// The new list stands.
    Yes,
    /// The file is not what was inspected, or `still` said no; nothing was done.
    Changed,
    /// Somebody wrote into the old file meanwhile; what was written there stands, edited.
    TakenOver,
    /// Somebody wrote into the old file meanwhile, but no list; the new list stands.
    Spoiled,
}

/// Replaces the list at `path`, which held `inspected`, by `new`; mode, owner and xattrs are kept (I08). `still` is asked
/// just before. `again` says what becomes of what a late writer wrote, `None` while that is no list.
pub fn rewrite(
    path: &Path,
    inspected: &[u8],
    new: &[u8],
    still: impl Fn() -> bool,
    again: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<Rewritten, RewriteError> {
    let real = links::target(path)?;
    let file = match File::open(&real) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Rewritten::Changed),
        Err(source) => return Err(RewriteError::Open { path: real, source }),
    };
    let mut held = Held { file };
    let attributes = Attributes::of(&real)?;
    let unchanged = |held: &mut Held| held.read().is_ok_and(|bytes| bytes == inspected);
    let ready = || still() && held.is_named(path) && unchanged(&mut held);
    if atomic::replace_when(&real, new, &attributes, ready)? == Replaced::No {
        return Ok(Rewritten::Changed);
    }
    poke(path, &real)?;
    let mut late = Late {
        path,
        real: &real,
        attributes: &attributes,
        held,
        known: inspected.to_vec(),
        ours: new.to_vec(),
    };
    late.follow(again)
}

/// The runtime watches the directory of lists, not that of a link's target.
fn poke(path: &Path, real: &Path) -> Result<(), RewriteError> {
    match path.parent() {
        Some(conf_dir) if real.parent() != Some(conf_dir) && path != real => Ok(atomic::poke(conf_dir)?),
        _ => Ok(()),
    }
}

/// The replaced file, still open.
#[derive(Debug)]
struct Held {
    file: File,
}

impl Held {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        let max = u64::try_from(limits::CONFLIST_MAX).unwrap_or(u64::MAX);
        (&self.file).take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn is_named(&self, path: &Path) -> bool {
        let id = |meta: std::fs::Metadata| (meta.dev(), meta.ino());
        match (self.file.metadata(), std::fs::metadata(path)) {
            (Ok(held), Ok(named)) => id(held) == id(named),
            _ => false,
        }
    }
}

/// Those who still write into the replaced file.
struct Late<'a> {
    path: &'a Path,
    real: &'a Path,
    attributes: &'a Attributes,
    held: Held,
    /// What of the replaced file is dealt with.
    known: Vec<u8>,
    /// What stands in its place.
    ours: Vec<u8>,
}

impl Late<'_> {
    fn follow(&mut self, again: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Result<Rewritten, RewriteError> {
        let start = Instant::now();
        let mut done = Rewritten::Yes;
        let mut last = None;
        loop {
            // Asked before it is read: once nobody writes, what is read is final.
            let writers = writers::of(self.held.file.as_fd());
            let bytes = self.held.read().ok().filter(|bytes| *bytes != self.known);
            let settled = writers == Writers::None || bytes == last;
            if bytes.is_none() && writers != Writers::Some {
                return Ok(done);
            }
            if let Some(list) = bytes.clone().filter(|_| settled).and_then(&again) {
                let still = || std::fs::read(self.path).is_ok_and(|now| now == self.ours);
                if atomic::replace_when(self.real, &list, self.attributes, still)? == Replaced::No {
                    // Changed once more: the next look takes that one.
                    return Ok(done);
                }
                poke(self.path, self.real)?;
                self.ours = list;
                self.known = bytes.clone().unwrap_or_default();
                done = Rewritten::TakenOver;
            } else if bytes.is_some() {
                let over = writers == Writers::None || start.elapsed() >= limits::LATE_WRITER;
                if over {
                    return Ok(Rewritten::Spoiled);
                }
            }
            if start.elapsed() >= limits::LATE_WRITER || !self.stands() {
                return Ok(done);
            }
            last = bytes;
            std::thread::sleep(limits::LATE_WRITER_POLL);
        }
    }

    /// Whether what was put there is still there.
    fn stands(&self) -> bool {
        std::fs::read(self.path).is_ok_and(|now| now == self.ours)
    }
}
