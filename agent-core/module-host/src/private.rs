//! Folders and files that hold what runs as this program does: nobody else may have made them or be able to change them
//! (M09).

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aether_durable::read::Owned;

/// Permission bits by which others than the owner can write.
const WRITABLE: u32 = 0o022;
/// Permission bits by which others than the owner can read or write.
const OPEN: u32 = 0o066;

/// Why a place is not used.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// It cannot be looked at.
    #[error("cannot tell whose {path} is")]
    Look {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Somebody else could change what runs, or has made it.
    #[error(
        "{path} is not used: {why}, and what is kept there runs as uid {uid}. Remove it, or keep compiled modules elsewhere"
    )]
    Foreign {
        /// The path.
        path: PathBuf,
        /// Whose it is, or what its mode is.
        why: String,
        /// As whom this program runs.
        uid: u32,
    },
}

/// Whether a folder is this user's and writable by nobody else, and every folder or link on the way to it this user's or
/// root's: whoever owns one of these can put another in its place. Their modes are not looked at: the directory for
/// temporary files is writable by all, and so is an `emptyDir` of a pod, which nobody else reaches.
pub(crate) fn folder(path: &Path) -> Result<(), PrivateError> {
    let look = |source| PrivateError::Look { path: path.to_owned(), source };
    let uid = rustix::process::geteuid().as_raw();
    let absolute = std::path::absolute(path).map_err(look)?;
    for step in absolute.ancestors() {
        let found = std::fs::symlink_metadata(step).map_err(look)?;
        if found.uid() != 0 && found.uid() != uid {
            return Err(foreign(step, belongs(found.uid()), uid));
        }
    }
    let found = std::fs::metadata(&absolute).map_err(look)?;
    judge(path, found.uid(), found.mode(), WRITABLE, uid)
}

/// Whether a file that was read is this user's, and nobody else can read or write it.
pub(crate) fn secret(path: &Path, read: &Owned) -> Result<(), PrivateError> {
    judge(path, read.uid, read.mode, OPEN, rustix::process::geteuid().as_raw())
}

fn judge(path: &Path, owner: u32, mode: u32, forbidden: u32, uid: u32) -> Result<(), PrivateError> {
    if owner != uid {
        return Err(foreign(path, belongs(owner), uid));
    }
    if mode & forbidden != 0 {
        return Err(foreign(path, format!("its mode is {:04o}", mode & 0o7777), uid));
    }
    Ok(())
}

fn belongs(owner: u32) -> String {
    format!("it belongs to uid {owner}")
}

fn foreign(path: &Path, why: String, uid: u32) -> PrivateError {
    PrivateError::Foreign { path: path.to_owned(), why, uid }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn m09_a_folder_is_used_if_nobody_else_made_it_or_can_write_it() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("own");
        std::fs::create_dir(&own).unwrap();
        for (bits, used) in [(0o700, true), (0o755, true), (0o770, false), (0o707, false), (0o1777, false)] {
            mode(&own, bits);
            assert_eq!(folder(&own).is_ok(), used, "{bits:o}");
        }
        mode(&own, 0o700);
        chown(&own, Some(65534), None).unwrap();
        let error = folder(&own).unwrap_err().to_string();
        assert!(error.contains("it belongs to uid 65534") && error.contains("Remove it"), "{error}");
    }

    #[test]
    fn m09_a_folder_below_one_of_somebody_else_or_behind_their_link_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("made/inside");
        std::fs::create_dir_all(&inside).unwrap();
        mode(&root.path().join("made"), 0o777);
        folder(&inside).unwrap();
        chown(root.path().join("made"), Some(65534), None).unwrap();
        let error = folder(&inside).unwrap_err().to_string();
        assert!(error.contains("/made is not used: it belongs to uid 65534"), "{error}");
        let (own, link) = (root.path().join("own"), root.path().join("link"));
        std::fs::create_dir(&own).unwrap();
        symlink(&own, &link).unwrap();
        folder(&link).unwrap();
        lchown(&link, Some(65534), None).unwrap();
        folder(&link).unwrap_err();
    }
}
