//! Go's `filepath.Join` of a directory and a network's name.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Joins and cleans by the text alone, as Go does: `..` takes the part before it away, whatever that is.
pub(super) fn join(directory: &Path, name: &str) -> PathBuf {
    let rooted = directory.has_root();
    let mut parts: Vec<&OsStr> = Vec::new();
    let given = directory.components().filter_map(|component| match component {
        Component::Normal(part) => Some(part),
        Component::ParentDir => Some(OsStr::new("..")),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    for part in given.chain(name.split('/').map(OsStr::new)) {
        if part.is_empty() || part == "." {
            continue;
        }
        let can_go_up = parts.last().is_some_and(|last| *last != "..");
        if part == ".." && can_go_up {
            parts.pop();
        } else if part != ".." || !rooted {
            parts.push(part);
        }
    }
    let mut joined = PathBuf::from(if rooted { "/" } else { "" });
    joined.extend(parts);
    if joined.as_os_str().is_empty() { PathBuf::from(".") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i04_the_drop_in_directory_is_the_one_go_makes() {
        let dir = Path::new("/etc/cni/net.d");
        for (name, joined) in [
            ("cbr0", "/etc/cni/net.d/cbr0"),
            ("", "/etc/cni/net.d"),
            (".", "/etc/cni/net.d"),
            ("..", "/etc/cni"),
            ("../../../../x", "/x"),
            ("a//b/", "/etc/cni/net.d/a/b"),
            ("/abs", "/etc/cni/net.d/abs"),
        ] {
            assert_eq!(join(dir, name), Path::new(joined), "{name:?}");
        }
        assert_eq!(join(Path::new("net.d"), "../../x"), Path::new("../x"));
        assert_eq!(join(Path::new("net.d"), ".."), Path::new("."));
    }
}
