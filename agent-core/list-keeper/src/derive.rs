//! Writing and removing derived lists (I06). Under the lock of whoever calls.

use std::ffi::OsString;
use std::path::Path;

use aether_conflist::derived;
use aether_conflist::load::{DropIns, List};
use aether_conflist::own::OwnEntry;
use aether_durable::Attributes;
use aether_durable::atomic::{self, Removed, Replaced, WriteError};

use crate::rewrite::{self, RewriteError, Rewritten};

/// The mode of a new list (I08).
const MODE: u32 = 0o600;

/// A derived list to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derivation {
    /// The configuration's name.
    pub source: OsString,
    /// What it holds.
    pub source_bytes: Vec<u8>,
    /// The derived list's name.
    pub name: OsString,
    /// What that holds now, if there is one.
    pub old: Option<Vec<u8>>,
    /// What it will hold.
    pub new: Vec<u8>,
}

/// Writes a derived list, if its source and itself are what was inspected.
pub fn write(
    conf_dir: &Path,
    derivation: &Derivation,
    own: &OwnEntry,
    still: impl Fn() -> bool,
) -> Result<Rewritten, RewriteError> {
    let path = conf_dir.join(&derivation.name);
    let source = conf_dir.join(&derivation.source);
    let unchanged = || std::fs::read(&source).is_ok_and(|bytes| bytes == derivation.source_bytes);
    let Some(old) = &derivation.old else {
        let free = || still() && unchanged() && std::fs::symlink_metadata(&path).is_err();
        let replaced = atomic::replace_when(&path, &derivation.new, &Attributes::with_mode(MODE), free)?;
        return Ok(if replaced == Replaced::Yes { Rewritten::Yes } else { Rewritten::Changed });
    };
    let again = |bytes: Vec<u8>| {
        let source =
            List::load(&derivation.source, derivation.source_bytes.as_slice(), DropIns::none()).ok()?;
        let existing = List::load(&derivation.name, bytes, DropIns::none()).ok()?;
        derived::derive(&source, Some(&existing), own).ok()
    };
    rewrite::rewrite(&path, old, &derivation.new, || still() && unchanged(), again)
}

/// Removes these derived lists; returns those that were there.
pub fn remove<'a>(
    conf_dir: &Path,
    names: impl IntoIterator<Item = &'a OsString>,
) -> Result<Vec<OsString>, WriteError> {
    let mut removed = Vec::new();
    for name in names {
        if derived::is_derived(name) && atomic::remove(&conf_dir.join(name))? == Removed::Yes {
            removed.push(name.clone());
        }
    }
    Ok(removed)
}
