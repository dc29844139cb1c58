//! Full and immutable (C17, I12).

use std::process::Command;

use crate::support::{ENTRY, FLANNEL, LIST, Node, is};

/// `chattr +i` until it is dropped.
struct Immutable(std::path::PathBuf);

impl Immutable {
    fn new(path: std::path::PathBuf) -> Self {
        let ran = Command::new("chattr").arg("+i").arg(&path).status();
        assert!(
            ran.is_ok_and(|status| status.success()),
            "this test needs chattr, root, and a file system that knows +i"
        );
        Self(path)
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-i").arg(&self.0).status();
    }
}

/// A small file system until it is dropped.
struct Tmpfs(std::path::PathBuf);

impl Tmpfs {
    fn new(path: std::path::PathBuf) -> Self {
        let ran = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&path).status();
        assert!(ran.is_ok_and(|status| status.success()), "this test needs root, to mount a small tmpfs");
        Self(path)
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn i12_c17_a_full_disk_leaves_the_old_list_and_says_so() {
    let node = Node::empty();
    let _mount = Tmpfs::new(node.conf());
    node.want(ENTRY);
    node.put(LIST, FLANNEL);
    node.put("05-a.conf", "{\"name\":\"a\",\"type\":\"bridge\"}");
    let filler = node.conf().join("filler");
    let mut size = 64 * 1024;
    while size > 0 && std::fs::write(&filler, vec![b'x'; size]).is_err() {
        size -= 1024;
    }
    is(&node.repair(ENTRY), "failed", &["No space left on device", "net.d", "uid 0"]);
    is(&node.derive("05-a.conf"), "failed", &["No space left on device"]);
    assert_eq!(node.get(LIST), FLANNEL);
    assert!(!node.has("00-aether-05-a.conf.conflist") && node.temporaries().is_empty());
    std::fs::remove_file(filler).unwrap();
    is(&node.repair(ENTRY), "done", &[]);
}

#[test]
fn i12_c17_an_immutable_list_stays_and_is_named() {
    let node = Node::flannel();
    let guard = Immutable::new(node.conf().join(LIST));
    is(&node.repair(ENTRY), "failed", &["rename over", LIST, "Operation not permitted"]);
    assert_eq!(node.get(LIST), FLANNEL);
    assert!(node.temporaries().is_empty());
    drop(guard);
    is(&node.repair(ENTRY), "done", &[]);
}
