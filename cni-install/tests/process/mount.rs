//! Mounts that end with their guard.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mount, taken away when the guard is dropped.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// A tmpfs of so many KiB.
    pub(crate) fn tmpfs(at: &Path, kib: u32) -> Self {
        run("mount", &["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"], at);
        Self(at.to_owned())
    }

    /// The directory over itself, read-only.
    pub(crate) fn read_only(at: &Path) -> Self {
        run("mount", &["--bind", &at.to_string_lossy()], at);
        let mount = Self(at.to_owned());
        run("mount", &["-o", "remount,bind,ro"], at);
        mount
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l"]).arg(&self.0).status();
    }
}

/// A file or directory that nobody can change, until the guard is dropped.
pub(crate) struct Immutable(PathBuf);

impl Immutable {
    pub(crate) fn new(path: &Path) -> Self {
        run("chattr", &["+i"], path);
        Self(path.to_owned())
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

fn run(program: &str, args: &[&str], at: &Path) {
    let output = Command::new(program).args(args).arg(at).output().unwrap_or_else(|error| {
        panic!("this test needs {program} (apt-get install mount e2fsprogs): {error}")
    });
    assert!(
        output.status.success(),
        "{program} {args:?} {} (run as root, on a file system like ext4): {}",
        at.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
