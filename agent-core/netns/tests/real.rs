//! Looks at real namespaces. Needs root, as the programs do.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper fails its test by panicking"
)]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aether_netns::{EnterError, Seen, has_interface, look};
use rustix::mount::UnmountFlags;
use rustix::thread::UnshareFlags;

#[allow(unsafe_code, reason = "rustix marks unshare unsafe for its FILES flag, which is not used")]
fn unshare() -> rustix::io::Result<()> {
    // SAFETY: no file table is unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
}

/// A network namespace of its own, bound to a file; nothing of it is left after the drop.
struct Namespace {
    dir: tempfile::TempDir,
}

impl Namespace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ns");
        std::fs::write(&path, b"").unwrap();
        let target = path.clone();
        std::thread::spawn(move || {
            unshare().expect("cannot make a network namespace: run the tests as root");
            let tid = rustix::thread::gettid().as_raw_nonzero();
            rustix::mount::mount_bind(format!("/proc/self/task/{tid}/ns/net"), &target)
                .expect("cannot bind a namespace: run the tests as root");
        })
        .join()
        .unwrap();
        Self { dir }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("ns")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.path(), UnmountFlags::DETACH);
    }
}

fn own() -> u64 {
    std::fs::metadata("/proc/thread-self/ns/net").unwrap().ino()
}

#[test]
fn s06_a_namespace_is_told_by_its_inode() {
    let (a, b) = (Namespace::new(), Namespace::new());
    let inode = |path: &Path| match look(path) {
        Seen::Namespace { inode, created_secs } => {
            assert!(created_secs > 1_600_000_000, "{created_secs}");
            inode
        }
        other => panic!("{other:?}"),
    };
    assert_ne!(inode(&a.path()), inode(&b.path()));
    assert_eq!(inode(&a.path()), std::fs::metadata(a.path()).unwrap().ino());
    let link = a.dir.path().join("link");
    std::os::unix::fs::symlink(a.path(), &link).unwrap();
    assert_eq!(inode(&link), inode(&a.path()));
    assert_eq!(inode(Path::new("/proc/self/ns/net")), own());
}

#[test]
fn s06_a_mount_that_cannot_be_seen_is_not_a_missing_one() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("file"), b"").unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for path in [at("file"), at("dangling"), at("pipe"), dir.path().to_owned()] {
        assert!(matches!(look(&path), Seen::NotANamespace), "{path:?}");
    }
    assert!(matches!(look(&at("no")), Seen::Missing));
    assert!(matches!(look(&at("no/such")), Seen::ParentMissing));
    assert!(matches!(look(&at("file/such")), Seen::ParentMissing));
    assert!(matches!(look(&at(&"x".repeat(300))), Seen::Error(_)));
}

#[test]
fn s06_an_unmounted_namespace_leaves_a_plain_file_and_then_nothing() {
    let ns = Namespace::new();
    rustix::mount::unmount(ns.path(), UnmountFlags::DETACH).unwrap();
    assert!(matches!(look(&ns.path()), Seen::NotANamespace));
    std::fs::remove_file(ns.path()).unwrap();
    assert!(matches!(look(&ns.path()), Seen::Missing));
}

#[test]
fn k09_an_interface_is_found_in_its_own_namespace_and_the_caller_stays_in_his() {
    let ns = Namespace::new();
    let before = own();
    assert!(has_interface(&ns.path(), "lo").unwrap());
    assert!(!has_interface(&ns.path(), "eth9").unwrap());
    assert!(!has_interface(&ns.path(), "longer-than-any-interface").unwrap());
    assert_eq!(own(), before);
}

#[test]
fn k09_what_is_no_network_namespace_is_said_to_be_none() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(matches!(has_interface(&file, "lo"), Err(EnterError::NotANamespace { .. })));
    let error = has_interface(Path::new("/proc/self/ns/mnt"), "lo").unwrap_err();
    assert!(error.to_string().starts_with("cannot enter /proc/self/ns/mnt"), "{error}");
    let error = has_interface(&dir.path().join("no"), "lo").unwrap_err();
    assert!(error.to_string().starts_with("cannot open"), "{error}");
}
