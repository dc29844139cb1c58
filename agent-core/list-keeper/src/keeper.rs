//! What the agent calls: each operation under the lock, with marker and wanted state read again under it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aether_conflist::want::{self, Resolved};
use aether_domain::chain::Healthy;
use aether_domain::text::error_chain;
use aether_domain::{limits, paths};
use aether_durable::atomic;
use aether_durable::lock::Lock;

use crate::look;
use crate::memory::{self, Recalled};

mod lists;
mod others;
mod outcome;
pub use outcome::Outcome;

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Lists, and the wanted state.
    pub conf_dir: PathBuf,
    /// Plugins.
    pub bin_dir: PathBuf,
    /// Marker, lock and memory.
    pub state_dir: PathBuf,
}

/// Changes the node's lists and plugin. All calls block.
#[derive(Debug, Clone)]
pub struct Keeper {
    places: Places,
}

/// The lock, and what was read under it.
struct Session {
    _lock: Lock,
    wanted: Resolved,
}

type Step<T> = Result<T, Outcome>;

impl Keeper {
    /// Hands for these places.
    pub fn new(places: Places) -> Self {
        Self { places }
    }

    /// Puts `bytes` in place of the list `name`, if that still has the digest `expect` (SHA-256, lower-case hex), if
    /// `bytes` hold the entry that is wanted now, and if `still` says so at the last moment (C02, C03). Derived lists that
    /// stand before it go.
    pub fn replace_list(&self, name: &str, expect: &str, bytes: &[u8], still: impl Fn() -> bool) -> Outcome {
        settled(self.try_replace(name, expect, bytes, &still))
    }

    /// Makes the derived lists what they should be (I06): the first foreign file's is derived, or derived again; all others
    /// go; a foreign list that comes first gets our entry. `conf` is the file that was looked at, a single configuration
    /// or a derived list, and `expect` its digest.
    pub fn derive_list(&self, conf: &str, expect: &str, still: impl Fn() -> bool) -> Outcome {
        settled(self.try_derive(conf, expect, &still))
    }

    /// Puts the plugin's binary back from `source`, if that is the one with the wanted hash (C10).
    pub fn restore_plugin(&self, source: &Path, still: impl Fn() -> bool) -> Outcome {
        settled(self.try_restore(source, &still))
    }

    /// Writes down what was observed healthy (C03), unless that is written already.
    pub fn remember(&self, healthy: &Healthy, still: impl Fn() -> bool) -> Outcome {
        settled(self.try_remember(healthy, &still))
    }

    /// What was written down last.
    pub fn recall(&self) -> Recalled {
        memory::recall(&self.places.state_dir)
    }

    /// Takes the lock, waiting a bounded time, and reads marker and wanted state under it.
    fn begin(&self, still: &impl Fn() -> bool) -> Step<Session> {
        let path = self.places.state_dir.join(paths::EDIT_LOCK);
        let start = Instant::now();
        let lock = loop {
            if !still() {
                return Err(gone());
            }
            match Lock::try_take(&path) {
                Ok(Some(lock)) => break lock,
                Ok(None) if start.elapsed() >= limits::EDIT_LOCK_WAIT => {
                    return Err(Outcome::Failed(format!(
                        "{} has been locked by another program for {:?}; `fuser` names it",
                        path.display(),
                        limits::EDIT_LOCK_WAIT
                    )));
                }
                Ok(None) => std::thread::sleep(limits::EDIT_LOCK_POLL),
                Err(error) => return Err(Outcome::Failed(error_chain(&error))),
            }
        };
        let marker = self.places.state_dir.join(paths::UNINSTALLED);
        match std::fs::symlink_metadata(&marker) {
            Ok(_) => {
                return Err(Outcome::Refused(format!(
                    "{} stands: this node is uninstalled",
                    marker.display()
                )));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Outcome::Failed(format!("cannot look at {}: {error}", marker.display())));
            }
        }
        // A temporary file of a killed run; under the lock there is no other (I12).
        let _ = atomic::sweep_temporaries(&self.places.conf_dir);
        let last = self.recall().known();
        let wanted = want::resolve(&look::wanted(&self.places.conf_dir), last.as_ref());
        Ok(Session { _lock: lock, wanted })
    }
}

fn settled(step: Step<Outcome>) -> Outcome {
    match step {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

fn gone() -> Outcome {
    Outcome::Conflict("the right to do it was lost before it was done".to_owned())
}
