//! Lists that are symbolic links (I02): the link stays, its target is replaced beside itself.

use std::path::{Path, PathBuf};

use rustix::fs;

/// Why a list is not edited through its link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The target is not on the node, or its directory is not mounted here.
    #[error(
        "{path} is a symbolic link to {target}, which lies outside what is mounted here, so that it cannot be replaced \
         beside itself: mount its directory at the same path, or put the list itself in the link's place"
    )]
    Outside {
        /// The link.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// The path cannot be followed.
    #[error("{path} cannot be followed: {why}; correct or remove the link")]
    Broken {
        /// The link.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The file that is replaced when the list at `path` is: itself, or the target of its link.
pub fn target(path: &Path) -> Result<PathBuf, LinkError> {
    let Ok(link) = std::fs::read_link(path) else { return Ok(path.to_owned()) };
    let beside = path.parent().unwrap_or(Path::new("/"));
    let target = beside.join(&link);
    let outside = || LinkError::Outside { path: path.to_owned(), target: link.clone() };
    match std::fs::canonicalize(path) {
        Ok(real) if in_image(beside, &real) => Err(outside()),
        Ok(real) => Ok(real),
        Err(_) if !target.parent().is_some_and(Path::is_dir) => Err(outside()),
        Err(error) => Err(LinkError::Broken { path: path.to_owned(), why: error.to_string() }),
    }
}

/// The number by which statfs(2) knows overlayfs.
const OVERLAY: i64 = 0x794c_7630;

/// Whether `real` belongs to a container's image while the lists belong to the node: both live under one tree here, and
/// on the node it would be another file.
fn in_image(conf_dir: &Path, real: &Path) -> bool {
    let device = |path: &Path| fs::stat(path).ok().map(|stat| stat.st_dev);
    let root = device(Path::new("/"));
    let overlay = fs::statfs("/").is_ok_and(|root| root.f_type == OVERLAY);
    overlay && root.is_some() && device(conf_dir) != root && device(real) == root
}
