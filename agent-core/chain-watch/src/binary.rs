//! The plugin's binary against the hash that is wanted (C10). Hashed when it changed, not at each look.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use aether_domain::text::sha256;
use aether_durable::mark::{Look, Mark};
use aether_durable::read;

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

/// What was hashed last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashed(Option<(Mark, String)>);

impl Hashed {
    /// Compares the file at `path` with the hash that is wanted. Blocks.
    pub(crate) fn look(&mut self, path: &Path, wanted: Option<&str>) -> Binary {
        let unknown = |why: String| Binary::Unknown { why };
        let Some(wanted) = wanted else {
            return unknown("no hash of the plugin is known to be wanted".to_owned());
        };
        // Before the look: see [`Look`].
        let from = SystemTime::now();
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Binary::Missing,
            Err(error) => return unknown(format!("cannot look at {}: {error}", path.display())),
        };
        let look = Look::new(&meta, from);
        let found = match self.0.take() {
            Some((hashed, found)) if look.is_some_and(|look| look.mark() == hashed) => found,
            _ => match read::bounded(path, MAX) {
                Ok(Some(bytes)) => sha256(&bytes),
                Ok(None) => return Binary::Missing,
                Err(error) => return unknown(crate::look::explain(&error)),
            },
        };
        self.0 = look.and_then(Look::lasting).map(|mark| (mark, found.clone()));
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn c10_a_missing_a_changed_and_an_unexecutable_binary_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("aether-cni");
        let mut hashed = Hashed::default();
        let wanted = sha256(b"plugin");
        let mut look = |wanted| hashed.look(&path, wanted);
        assert_eq!(look(Some(&wanted)), Binary::Missing);
        std::fs::write(&path, "plugin").unwrap();
        let mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o644);
        assert!(matches!(look(Some(&wanted)), Binary::Wrong { how } if how.contains("0644")));
        mode(0o755);
        assert_eq!(look(Some(&wanted)), Binary::Right);
        // As long, and within the same tick of the kernel's clock, most likely.
        std::fs::write(&path, "plagin").unwrap();
        assert!(matches!(look(Some(&wanted)), Binary::Wrong { how } if how.contains(&wanted)));
        std::fs::write(&path, "another").unwrap();
        assert!(matches!(look(Some(&wanted)), Binary::Wrong { how } if how.contains(&wanted)));
        assert!(matches!(look(None), Binary::Unknown { .. }));
    }
}
