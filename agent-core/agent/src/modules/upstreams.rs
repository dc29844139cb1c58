//! Observed upstreams: what is known, and what of it is written out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aether_domain::format::{self, Format, Parsed};
use aether_domain::limits;
use aether_domain::text::error_chain;
use aether_domain::upstreams::{self, Upstream};
use aether_durable::atomic::{self, WriteError};
use aether_durable::{Attributes, read};
use aether_module_host::ports::{self, UpstreamsSummary};

const MODE: u32 = 0o600;

/// The set of them, and its file.
#[derive(Debug)]
pub(crate) struct Upstreams {
    file: PathBuf,
    set: Mutex<Set>,
}

#[derive(Debug, Default)]
struct Set {
    known: BTreeMap<String, Upstream>,
    /// Changes that are not written out.
    dirty: u32,
    oldest_dirty: Option<u64>,
    last_flush: Option<u64>,
    /// A newer agent's file, which is left alone (S02).
    newer: bool,
}

impl Upstreams {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, set: Mutex::default() }
    }

    /// Reads the file, as the owner does before it enables the modules. Blocks. One that cannot be used is said; a
    /// damaged one is written anew with what is observed.
    pub(crate) fn load(&self) {
        let bytes = match read::bounded(&self.file, limits::CONFLIST_MAX) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "observed upstreams are not known from before");
                return;
            }
        };
        let mut set = self.lock();
        match format::parse::<upstreams::Upstreams>(&bytes, upstreams::READER) {
            Parsed::Good(file) => {
                set.known = file.upstreams.into_iter().map(|one| (one.name.clone(), one)).collect();
            }
            Parsed::Newer(format) => {
                set.newer = true;
                tracing::warn!(file = %self.file.display(), ?format, "a newer agent wrote the observed upstreams: left alone");
            }
            Parsed::Damaged(how) => {
                tracing::warn!(file = %self.file.display(), how, "the observed upstreams are damaged, and are gathered anew");
            }
        }
    }

    pub(crate) fn summary(&self) -> UpstreamsSummary {
        let set = self.lock();
        UpstreamsSummary {
            total: u32::try_from(set.known.len()).unwrap_or(u32::MAX),
            dirty: set.dirty,
            oldest_dirty: set.oldest_dirty,
            last_flush: set.last_flush,
        }
    }

    pub(crate) fn page(&self, after: Option<&str>, limit: usize) -> Vec<ports::Upstream> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let set = self.lock();
        let page = set.known.range::<str, _>((from, Bound::Unbounded)).take(limit);
        page.map(|(_, one)| ports::Upstream {
            name: one.name.clone(),
            port: one.port,
            first_seen: one.first_seen,
            last_seen: one.last_seen,
            hits: one.hits,
        })
        .collect()
    }

    /// Stops remembering these; returns how many there were. `now` in milliseconds since 1970.
    pub(crate) fn forget(&self, names: &[String], now: u64) -> usize {
        let mut set = self.lock();
        let gone = names.iter().filter(|name| set.known.remove(name.as_str()).is_some()).count();
        if gone > 0 {
            set.dirty = set.dirty.saturating_add(u32::try_from(gone).unwrap_or(u32::MAX));
            set.oldest_dirty.get_or_insert(now);
        }
        gone
    }

    /// Writes the whole set out, durably, and returns how many there are. Blocks.
    pub(crate) fn flush(&self, now: u64) -> Result<usize, FlushError> {
        let (file, counted) = {
            let set = self.lock();
            if set.newer {
                return Err(FlushError::Newer { file: self.file.clone() });
            }
            let known = set.known.values().cloned().collect();
            (upstreams::Upstreams { format: Format::V1, upstreams: known }, set.dirty)
        };
        let bytes = serde_json::to_vec(&file).map_err(FlushError::Json)?;
        let directory = self.file.parent().unwrap_or(Path::new("/"));
        atomic::create_dir_all(directory, 0o700).map_err(FlushError::Write)?;
        atomic::replace(&self.file, &bytes, &Attributes::with_mode(MODE)).map_err(FlushError::Write)?;
        let mut set = self.lock();
        // What changed while it was written waits still.
        set.dirty = set.dirty.saturating_sub(counted);
        set.oldest_dirty = (set.dirty > 0).then_some(now);
        set.last_flush = Some(now);
        Ok(file.upstreams.len())
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        // Whole at every moment that the lock is released, by a panic too.
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why they are not written out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FlushError {
    #[error("{file} was written by a newer agent and is left alone")]
    Newer { file: PathBuf },
    #[error("cannot put the observed upstreams into JSON")]
    Json(#[source] serde_json::Error),
    #[error("cannot write the observed upstreams out")]
    Write(#[source] WriteError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m01_what_is_forgotten_is_gone_from_the_file_after_the_flush_and_a_newer_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/upstreams.json");
        let one =
            |name: &str| format!(r#"{{"name":"{name}","port":80,"firstSeen":1,"lastSeen":2,"hits":3}}"#);
        std::fs::create_dir(dir.path().join("state")).unwrap();
        let text = format!(r#"{{"format":1,"oldestReader":1,"upstreams":[{},{}]}}"#, one("a"), one("b"));
        std::fs::write(&file, text).unwrap();
        let upstreams = Upstreams::new(file.clone());
        upstreams.load();
        assert_eq!(upstreams.page(Some("a"), 10).len(), 1);
        assert_eq!(upstreams.forget(&["a".to_owned(), "x".to_owned()], 7), 1);
        assert_eq!((upstreams.summary().dirty, upstreams.summary().oldest_dirty), (1, Some(7)));
        assert_eq!(upstreams.flush(9).unwrap(), 1);
        assert_eq!(
            upstreams.summary(),
            UpstreamsSummary { total: 1, last_flush: Some(9), ..Default::default() }
        );
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("\"b\"") && !text.contains("\"a\""), "{text}");
        let newer = r#"{"format":9,"oldestReader":9}"#;
        std::fs::write(&file, newer).unwrap();
        let upstreams = Upstreams::new(file.clone());
        upstreams.load();
        assert!(matches!(upstreams.flush(1), Err(FlushError::Newer { .. })));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
    }
}
