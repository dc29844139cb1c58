//! The plugin's binary against the hash that is wanted (C10). Hashed when it changed, not at each look.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use aether_durable::read;
use sha2::{Digest as _, Sha256};

/// The plugin's binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binary {
    /// It is the wanted one.
    Right,
    /// It is another one, or cannot be executed: how.
    Wrong {
        /// How it differs.
        how: String,
    },
    /// There is none.
    Missing,
    /// It cannot be told.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// The largest binary that is read: far above what the plugin is.
const MAX: usize = 64 * 1024 * 1024;
/// What must be set in its mode: the runtime executes it, and only root may change it.
const MODE: u32 = 0o755;

/// A file that was hashed: device, inode, size, and the times of its last changes.
type Stamp = (u64, u64, u64, i64, i64, i64, i64);

/// What was hashed last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashed(Option<(Stamp, String)>);

impl Hashed {
    /// Compares the file at `path` with the hash that is wanted. Blocks.
    pub(crate) fn look(&mut self, path: &Path, wanted: Option<&str>) -> Binary {
        let unknown = |why: String| Binary::Unknown { why };
        let Some(wanted) = wanted else {
            return unknown("no hash of the plugin is known to be wanted".to_owned());
        };
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Binary::Missing,
            Err(error) => return unknown(format!("cannot look at {}: {error}", path.display())),
        };
        let stamp = (
            meta.dev(),
            meta.ino(),
            meta.len(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        );
        if self.0.as_ref().is_none_or(|(hashed, _)| *hashed != stamp) {
            self.0 = match read::bounded(path, MAX) {
                Ok(Some(bytes)) => Some((stamp, digest(&bytes))),
                Ok(None) => return Binary::Missing,
                Err(error) => return unknown(crate::look::explain(&error)),
            };
        }
        let found = self.0.as_ref().map_or("", |(_, found)| found.as_str());
        let mode = meta.mode() & 0o7777;
        if found != wanted {
            Binary::Wrong { how: format!("{} has the hash {found}, not the wanted {wanted}", path.display()) }
        } else if mode & MODE != MODE {
            Binary::Wrong { how: format!("{} has the mode {mode:04o}, not {MODE:04o}", path.display()) }
        } else {
            Binary::Right
        }
    }
}

/// SHA-256 in lower-case hex.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn c10_a_missing_a_changed_and_an_unexecutable_binary_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("aether-cni");
        let mut hashed = Hashed::default();
        let wanted = digest(b"plugin");
        let mut look = |wanted| hashed.look(&path, wanted);
        assert_eq!(look(Some(&wanted)), Binary::Missing);
        std::fs::write(&path, "plugin").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(matches!(look(Some(&wanted)), Binary::Wrong { how } if how.contains("0644")));
        mode(0o755);
        assert_eq!(look(Some(&wanted)), Binary::Right);
        std::fs::write(&path, "another").unwrap();
        assert!(matches!(look(Some(&wanted)), Binary::Wrong { how } if how.contains(&wanted)));
        assert!(matches!(look(None), Binary::Unknown { .. }));
    }
}
