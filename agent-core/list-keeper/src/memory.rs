//! What was last observed healthy, across the agent's life (C03): `chain.json`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aether_domain::chain::Healthy;
use aether_domain::format::{self, Parsed};
use aether_domain::text::error_chain;
use aether_domain::{limits, paths};
use aether_durable::Attributes;
use aether_durable::atomic::{self, WriteError};
use aether_durable::read;

/// The mode of the file.
const MODE: u32 = 0o600;
/// What a damaged file's name goes on with.
const CORRUPT: &str = ".corrupt-";

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recalled {
    /// This.
    Known(Healthy),
    /// Nothing yet.
    Nothing,
    /// A newer program wrote it; it is left alone (S02).
    Newer,
    /// It is damaged, or cannot be read: why.
    Damaged(String),
}

impl Recalled {
    /// What is known.
    pub fn known(self) -> Option<Healthy> {
        match self {
            Self::Known(healthy) => Some(healthy),
            Self::Nothing | Self::Newer | Self::Damaged(_) => None,
        }
    }
}

/// Reads it.
pub fn recall(state_dir: &Path) -> Recalled {
    match read::bounded(&path(state_dir), limits::STATE_FILE_MAX) {
        Ok(None) => Recalled::Nothing,
        Ok(Some(bytes)) => match format::parse(&bytes, Healthy::READER) {
            Parsed::Good(healthy) => Recalled::Known(healthy),
            Parsed::Newer(_) => Recalled::Newer,
            Parsed::Damaged(why) => Recalled::Damaged(why),
        },
        Err(error) => Recalled::Damaged(error_chain(&error)),
    }
}

/// Writes it. Under the lock.
pub(crate) fn write(state_dir: &Path, healthy: &Healthy) -> Result<(), WriteError> {
    let mut bytes = serde_json::to_vec_pretty(healthy).unwrap_or_default();
    bytes.push(b'\n');
    atomic::replace_locked(&path(state_dir), &bytes, &Attributes::with_mode(MODE))
}

/// Forgets it, with what a killed run left beside it. Under the lock.
pub fn forget(state_dir: &Path) -> Result<atomic::Removed, WriteError> {
    atomic::sweep_temporary_of(&path(state_dir))?;
    atomic::remove(&path(state_dir))
}

/// Moves a damaged file aside, and keeps only the newest of them (S02). Under the lock.
pub(crate) fn quarantine(state_dir: &Path) -> Result<PathBuf, WriteError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let aside = state_dir.join(format!("{}{CORRUPT}{since}", paths::CHAIN));
    atomic::rename(&path(state_dir), &aside)?;
    let prefix = format!("{}{CORRUPT}", paths::CHAIN);
    let mut kept: Vec<OsString> = std::fs::read_dir(state_dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
        .collect();
    kept.sort();
    let surplus = kept.len().saturating_sub(limits::QUARANTINE_KEPT);
    atomic::remove_all(state_dir, kept.iter().take(surplus))?;
    Ok(aside)
}

fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(paths::CHAIN)
}
