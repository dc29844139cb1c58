//! The order of the steps, and that a second run has nothing to do.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use aether_durable::lock::Lock;

use crate::events::{Events, moves};
use crate::support::{Child, LIST, Node, chmod, until};

/// D1, D3: the runtime reloads on the rename inside net.d, and finds the plugin that the list names.
#[test]
fn i01_i03_d1_d3_the_binary_is_there_before_the_list_and_each_file_comes_by_a_rename_in_its_directory() {
    let node = Node::flannel();
    std::fs::create_dir(node.state()).unwrap();
    let (conf, bin) = (node.conf(), node.bin());
    let events = Events::of(&[("net.d", &conf), ("bin", &bin)]);
    node.install().ends(0);
    assert_eq!(
        moves(&events.drain()),
        [
            "bin create TEMP",
            "bin moved-from TEMP",
            "bin moved-to aether-cni",
            "net.d create TEMP",
            "net.d moved-from TEMP",
            "net.d moved-to .aether-cni-entry",
            "net.d create TEMP",
            "net.d moved-from TEMP",
            "net.d moved-to 10-flannel.conflist",
        ]
    );
    assert_eq!(std::fs::metadata(node.plugin()).unwrap().mode() & 0o7777, 0o755);
    assert_eq!(std::fs::read(node.plugin()).unwrap(), std::fs::read(node.source()).unwrap());
}

#[test]
fn i01_on_uninstall_the_marker_comes_first_then_the_list_then_the_wanted_state() {
    let node = Node::flannel();
    node.install().ends(0);
    let (conf, state, bin) = (node.conf(), node.state(), node.bin());
    let events = Events::of(&[("net.d", &conf), ("state", &state), ("bin", &bin)]);
    node.run(&["uninstall", "--remove-binary"]).ends(0);
    let seen: Vec<String> =
        moves(&events.drain()).into_iter().filter(|event| !event.contains("edit.lock")).collect();
    assert_eq!(
        seen,
        [
            "state create TEMP",
            "state moved-from TEMP",
            "state moved-to uninstalled",
            "net.d create TEMP",
            "net.d moved-from TEMP",
            "net.d moved-to 10-flannel.conflist",
            "net.d delete .aether-cni-entry",
            "bin delete aether-cni",
        ]
    );
}

#[test]
fn i01_the_marker_goes_after_the_wanted_state_and_before_the_list() {
    let node = Node::flannel();
    node.install().ends(0);
    node.uninstall().ends(0);
    let (conf, state) = (node.conf(), node.state());
    let events = Events::of(&[("net.d", &conf), ("state", &state)]);
    node.run(&["--no-wait", "--install-id", "later"]).ends(0);
    let seen: Vec<String> = moves(&events.drain())
        .into_iter()
        .filter(|event| event.contains("moved-to") || event.contains("delete"))
        .collect();
    assert_eq!(
        seen,
        [
            "net.d moved-to .aether-cni-entry",
            "state delete uninstalled",
            "net.d moved-to 10-flannel.conflist"
        ]
    );
}

#[test]
fn i01_content_that_is_already_there_is_not_written_again() {
    let node = Node::flannel();
    node.install().ends(0);
    let stamps = |node: &Node| {
        [node.plugin(), node.wanted(), node.list()].map(|path| {
            let meta = std::fs::metadata(path).unwrap();
            (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec())
        })
    };
    let before = stamps(&node);
    let (conf, bin) = (node.conf(), node.bin());
    let events = Events::of(&[("net.d", &conf), ("bin", &bin)]);
    node.install().ends(0).says(&["chained"]);
    assert_eq!(events.drain(), []);
    assert_eq!(stamps(&node), before);
    node.uninstall().ends(0);
    let marker = std::fs::metadata(node.marker()).unwrap();
    let events = Events::of(&[("net.d", &conf), ("bin", &bin)]);
    node.uninstall().ends(0);
    assert_eq!(events.drain(), []);
    assert_eq!(std::fs::metadata(node.marker()).unwrap().ino(), marker.ino());
}

#[test]
fn i01_an_upgrade_replaces_binary_and_entry_and_keeps_the_time_of_the_first_install() {
    let node = Node::flannel();
    node.run(&["--no-wait", "--install-id", "mesh/1"]).ends(0);
    let wanted = |node: &Node| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(node.wanted()).unwrap()).unwrap()
    };
    let mut first = wanted(&node);
    // As if the first install had been an hour ago.
    let hour_ago = first["firstInstalled"].as_u64().unwrap() - 3600;
    first["firstInstalled"] = hour_ago.into();
    std::fs::write(node.wanted(), first.to_string()).unwrap();
    node.release("v2");
    node.run(&["--no-wait", "--install-id", "mesh/2", "--add-deadline-seconds", "7"]).ends(0);
    let second = wanted(&node);
    assert_eq!(second["firstInstalled"], hour_ago);
    assert_eq!(second["installId"], "mesh/2");
    assert_ne!(second["pluginSha256"], first["pluginSha256"]);
    assert_eq!(std::fs::read(node.plugin()).unwrap(), std::fs::read(node.source()).unwrap());
    let ours = node.ours(LIST);
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0]["addDeadlineSeconds"], 7);
    assert_eq!(ours[0], second["entry"]);
}

#[test]
fn i01_a_damaged_wanted_state_is_written_anew_and_a_damaged_binary_copied_again() {
    let node = Node::flannel();
    node.install().ends(0);
    let good = std::fs::read(node.wanted()).unwrap();
    for damage in [&b""[..], b"{", b"\xff\xfe", &good[..good.len() / 2]] {
        std::fs::write(node.wanted(), damage).unwrap();
        std::fs::write(node.plugin(), b"half").unwrap();
        node.install().ends(0);
        let wanted: serde_json::Value =
            serde_json::from_slice(&std::fs::read(node.wanted()).unwrap()).unwrap();
        assert_eq!(wanted["entry"], node.ours(LIST)[0]);
        assert_eq!(std::fs::read(node.plugin()).unwrap(), std::fs::read(node.source()).unwrap());
    }
    chmod(&node.plugin(), 0o644);
    node.install().ends(0);
    assert_eq!(std::fs::metadata(node.plugin()).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn i01_no_step_is_taken_while_another_editor_holds_the_lock() {
    let node = Node::flannel();
    std::fs::create_dir(node.state()).unwrap();
    let before = node.tree();
    let lock = Lock::try_take(&node.state().join("edit.lock")).unwrap().unwrap();
    let mut child = Child(node.command(&["--no-wait"]).stderr(std::process::Stdio::piped()).spawn().unwrap());
    let waits = |pid: u32| {
        let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten().count();
        let stack = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        // 230 is clock_nanosleep on x86_64, 115 on arm64.
        fds > 0 && (stack.starts_with("230 ") || stack.starts_with("115 "))
    };
    let pid = child.0.id();
    until("the installer sleeps between two tries for the lock", || waits(pid));
    assert_eq!(node.tree(), before);
    assert_eq!(child.0.try_wait().unwrap(), None);
    drop(lock);
    assert!(child.0.wait().unwrap().success());
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i01_uninstall_keeps_the_binary_unless_told_and_never_removes_another_one() {
    let node = Node::flannel();
    node.install().ends(0);
    node.uninstall().ends(0);
    assert!(node.plugin().exists());
    node.run(&["uninstall", "--remove-binary"]).ends(0);
    assert!(!node.plugin().exists());
    node.run(&["uninstall", "--remove-binary"]).ends(0);
}

/// E6: what another install put there is not this one's to remove.
#[test]
fn i01_e6_uninstall_leaves_a_binary_that_is_not_the_installed_one() {
    let node = Node::flannel();
    node.install().ends(0);
    std::fs::write(node.plugin(), b"of another install").unwrap();
    node.run(&["uninstall", "--remove-binary"])
        .ends(0)
        .says(&["is not the binary that was installed", "--force"]);
    assert_eq!(std::fs::read(node.plugin()).unwrap(), b"of another install");
}

/// E6: nothing is removed by anything but `uninstall`; an older release that ends takes nothing with it.
#[test]
fn i01_e6_two_installs_leave_the_second_ones_files() {
    let node = Node::flannel();
    node.install().ends(0);
    node.release("v2");
    node.run(&["--no-wait", "--install-id", "two"]).ends(0);
    let tree = node.tree();
    node.run(&["--no-wait", "--install-id", "two"]).ends(0);
    assert_eq!(node.tree(), tree);
    assert_eq!(std::fs::read(node.plugin()).unwrap(), std::fs::read(node.source()).unwrap());
}

#[test]
fn i01_a_missing_or_empty_plugin_to_install_changes_nothing() {
    let node = Node::flannel();
    let before = node.tree();
    std::fs::write(node.source(), b"").unwrap();
    node.install().ends(1).says(&["is empty", "--plugin-source"]);
    std::fs::remove_file(node.source()).unwrap();
    node.install().ends(1).says(&["there is no plugin at", "--plugin-source"]);
    std::fs::create_dir(node.source()).unwrap();
    node.install().ends(1).says(&["no regular file"]);
    assert_eq!(node.tree(), before);
    assert!(!Path::new(&node.state()).exists());
}

#[test]
fn i01_a_state_directory_is_made_for_root_alone() {
    let node = Node::flannel();
    node.install().ends(0);
    assert_eq!(std::fs::metadata(node.state()).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(std::fs::metadata(node.state().join("edit.lock")).unwrap().mode() & 0o7777, 0o600);
}
