//! Disks that are full, files that nobody may change, and an error at each system call.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use crate::mount::{Immutable, Mount};
use crate::points;
use crate::support::{FLANNEL, LIST, Node, Ran, chmod, ours};

/// Asserts the message of I12: path, operation, uid and mode.
#[track_caller]
fn names(ran: Ran, path: &Path, operation: &str, words: &[&str]) {
    let path = path.to_string_lossy();
    let ran = ran.ends(1).says(&[&path, operation, "uid 0", "mode ", "what to do: "]);
    ran.says(words);
}

/// C17: a full file system.
#[test]
fn i12_c17_a_full_disk_leaves_the_old_list_and_says_so() {
    let node = Node::empty();
    let _mount = Mount::tmpfs(&node.conf(), 64);
    node.put(LIST, FLANNEL);
    // What is left fits the wanted state, or nothing at all, but never the list beside it.
    for spare in [0, 4096] {
        let filler = node.conf().join("filler");
        fill(&filler, spare);
        node.install().ends(1).says(&[
            "No space left on device",
            &node.conf().to_string_lossy(),
            "uid 0",
            "free some space",
        ]);
        assert_eq!(node.get(LIST), FLANNEL.as_bytes());
        assert_eq!(node.temporaries(), [] as [&Path; 0]);
        std::fs::remove_file(&filler).unwrap();
    }
    node.install().ends(0);
    // Taking the entry out needs room too, for as long as both lists stand.
    let filler = node.conf().join("filler");
    let chained = node.get(LIST);
    fill(&filler, 0);
    node.uninstall().ends(1).says(&["No space left on device"]);
    assert_eq!(node.get(LIST), chained);
    std::fs::remove_file(&filler).unwrap();
    node.uninstall().ends(0);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

/// Fills the file's file system but for `spare` bytes.
fn fill(file: &Path, spare: u64) {
    use std::io::Write as _;
    let mut out = std::fs::File::create(file).unwrap();
    while out.write_all(&[b'x'; 4096]).is_ok() {}
    let size = out.metadata().unwrap().len();
    out.set_len(size - spare).unwrap();
}

/// C17: `chattr +i`.
#[test]
fn i12_c17_an_immutable_list_stays_and_the_message_names_it() {
    let node = Node::flannel();
    let guard = Immutable::new(&node.list());
    names(node.install(), &node.list(), "rename over", &["Operation not permitted", "chattr -i"]);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    assert_eq!(node.temporaries(), [] as [&Path; 0]);
    drop(guard);
    node.install().ends(0);
    let chained = node.get(LIST);
    let guard = Immutable::new(&node.list());
    names(node.uninstall(), &node.list(), "rename over", &["chattr -i"]);
    assert_eq!(node.get(LIST), chained);
    assert!(node.marker().exists() && node.wanted().exists(), "what is unfinished can be seen");
    drop(guard);
    node.uninstall().ends(0);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

#[test]
fn i12_an_immutable_or_read_only_directory_of_lists_is_named() {
    let node = Node::flannel();
    let guard = Immutable::new(&node.conf());
    names(node.install(), &node.conf(), "create a file in", &["wanted state"]);
    drop(guard);
    let guard = Mount::read_only(&node.conf());
    names(node.install(), &node.conf(), "create a file in", &["Read-only file system", "--cni-conf-dir"]);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    drop(guard);
    node.install().ends(0);
}

/// E4: the host's directory of plugins is read-only.
#[test]
fn i12_e4_a_read_only_directory_of_plugins_is_fine_with_an_identical_binary_and_named_with_another() {
    let node = Node::flannel();
    std::fs::copy(node.source(), node.plugin()).unwrap();
    chmod(&node.plugin(), 0o755);
    let _mount = Mount::read_only(&node.bin());
    node.install().ends(0);
    assert_eq!(node.ours(LIST).len(), 1);
    let chained = node.get(LIST);
    node.release("v2");
    names(
        node.install(),
        &node.bin(),
        "create a file in",
        &["Read-only file system", "--cni-bin-dir", "plugin's binary"],
    );
    assert_eq!(node.get(LIST), chained);
}

/// E3: another user owns the directory, and the capability to write there all the same was dropped.
#[test]
fn i12_e3_a_wrong_owner_is_named_with_path_uid_and_mode() {
    let node = Node::flannel();
    chmod(node.root(), 0o755);
    chmod(&node.bin(), 0o555);
    std::os::unix::fs::chown(node.bin(), Some(12), Some(12)).unwrap();
    std::fs::create_dir(node.state()).unwrap();
    for dir in [node.conf(), node.state()] {
        std::os::unix::fs::chown(dir, Some(65534), Some(65534)).unwrap();
    }
    // Where other users may not enter, the program is copied to a place where they may.
    let program = node.root().join("aether-cni-install");
    // By another process: a child of this one could have it open for writing still when it is run.
    let mut install = std::process::Command::new("install");
    assert!(install.args(["-m", "755", crate::support::PROGRAM]).arg(&program).status().unwrap().success());
    let output = std::process::Command::new(program)
        .env_clear()
        .args(node.args())
        .arg("--no-wait")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let bin = node.bin();
    Ran::of(&output).ends(1).says(&[
        &bin.to_string_lossy(),
        "create a file in",
        "uid 65534",
        "mode 0555",
        "Permission denied",
        "DAC_OVERRIDE",
    ]);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

#[test]
fn i12_something_else_at_our_files_places_is_named_and_stays() {
    let node = Node::flannel();
    std::fs::create_dir_all(node.plugin()).unwrap();
    node.install().ends(1).says(&[&node.plugin().to_string_lossy(), "rename over", "move it away"]);
    std::fs::remove_dir(node.plugin()).unwrap();
    std::fs::create_dir(node.wanted()).unwrap();
    node.install().ends(1).says(&[".aether-cni-entry", "move it away"]);
    std::fs::remove_dir(node.wanted()).unwrap();
    std::fs::remove_dir_all(node.state()).unwrap();
    std::fs::write(node.state(), "a file").unwrap();
    node.install().ends(1).says(&[&node.state().to_string_lossy(), "directory"]);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

const ERRORS: [&str; 4] = ["ENOSPC", "EIO", "EROFS", "EPERM"];

/// Runs `args` on a node from `prepare`, once for each call that touches the node and each error. `check` gets the node,
/// how it ended, and which fault it was.
fn each_fault(prepare: impl Fn() -> Node, args: &[&str], check: impl Fn(&Node, &Ran, &str)) {
    // No close: it does not fail for the files here, and the standard library panics where closing a directory does.
    for point in points::of(&prepare, args).iter().filter(|point| point.call != "close") {
        for error in ERRORS {
            let node = prepare();
            let (ran, trace) = node.strace(&point.inject(&format!("error={error}")), args);
            let what = format!("{error} at {point}");
            assert!(trace.contains("(INJECTED)"), "{what}: {ran:#?}");
            check(&node, &ran, &what);
        }
    }
}

/// I4: an error leaves nothing worse than it was found.
#[test]
fn i12_i4_an_error_at_any_system_call_of_an_install_leaves_the_old_list_or_the_whole_new_one() {
    each_fault(Node::flannel, &["--no-wait"], |node, ran, what| {
        let list = node.get(LIST);
        let chained = ours(&list).len() == 1;
        if ran.code == Some(0) {
            assert!(chained, "{what}: {ran:#?}");
        } else {
            assert!(matches!(ran.code, Some(1 | 3)), "{what}: {ran:#?}");
            explains(node, ran, what);
            // New only where its rename was done and something after it failed.
            assert!(
                list == FLANNEL.as_bytes() || (chained && ran.err.contains("put our entry") || fsync(what)),
                "{what}: {ran:#?}"
            );
        }
        node.install().ends(0);
        assert_eq!(ours(&node.get(LIST)).len(), 1, "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
    });
}

#[test]
fn i12_i4_an_error_at_any_system_call_of_an_uninstall_leaves_the_old_list_or_the_whole_new_one() {
    let prepare = || {
        let node = Node::flannel();
        node.install().ends(0);
        node
    };
    each_fault(prepare, &["uninstall", "--remove-binary"], |node, ran, what| {
        let list = node.get(LIST);
        let chained = list != FLANNEL.as_bytes();
        if chained {
            assert_eq!(ours(&list).len(), 1, "{what}");
        }
        if ran.code == Some(0) {
            assert!(!chained && !node.wanted().exists(), "{what}: {ran:#?}");
        } else {
            assert_eq!(ran.code, Some(1), "{what}: {ran:#?}");
            explains(node, ran, what);
        }
        node.run(&["uninstall", "--remove-binary"]).ends(0);
        assert_eq!(node.get(LIST), FLANNEL.as_bytes(), "{what}");
        assert!(!node.wanted().exists() && !node.plugin().exists(), "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
    });
}

fn fsync(what: &str) -> bool {
    what.contains(" at fsync ")
}

/// The message names a place on this node, whatever failed.
#[track_caller]
fn explains(node: &Node, ran: &Ran, what: &str) {
    let place = node.root().to_string_lossy().into_owned();
    let named = ran.err.lines().any(|line| {
        (line.contains("error: ") || line.contains("not chained: ") || line.contains("not done: "))
            && line.contains(&place)
    });
    assert!(named, "{what}: {ran:#?}");
}
