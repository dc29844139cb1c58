//! Which install an uninstall forbids, and which one may follow it.

use crate::support::{LIST, Node, Ran};

fn install(node: &Node, id: &str) -> Ran {
    node.run(&["--no-wait", "--install-id", id])
}

fn uninstalled(id: &str) -> Node {
    let node = Node::flannel();
    install(&node, id).ends(0);
    node.uninstall().ends(0);
    node
}

#[test]
fn i01_a_restarted_init_container_does_not_undo_an_uninstall() {
    let node = uninstalled("mesh/3");
    let tree = node.tree();
    for earlier in ["mesh/3", "mesh/2", "mesh/1"] {
        install(&node, earlier).ends(4).says(&["uninstalled", "mesh/3", earlier, "--force", "--install-id"]);
    }
    assert_eq!(node.tree(), tree);
    assert!(node.marker().exists());
}

#[test]
fn i01_a_later_install_removes_the_marker() {
    for (removed, later) in
        [("mesh/3", "mesh/4"), ("mesh/9", "mesh/10"), ("mesh/3", "other/1"), ("manual", "mesh/1"), ("a", "b")]
    {
        let node = uninstalled(removed);
        install(&node, later).ends(0).says(&["removed the marker"]);
        assert!(!node.marker().exists(), "{removed} {later}");
        assert_eq!(node.ours(LIST).len(), 1);
    }
}

#[test]
fn i01_force_removes_the_marker_too() {
    let node = uninstalled("mesh/3");
    node.run(&["--no-wait", "--install-id", "mesh/3", "--force"]).ends(0);
    assert!(!node.marker().exists());
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i01_the_uninstall_job_of_a_later_revision_forbids_that_one_too() {
    let node = Node::flannel();
    install(&node, "mesh/3").ends(0);
    node.run(&["uninstall", "--install-id", "mesh/5"]).ends(0);
    install(&node, "mesh/5").ends(4);
    install(&node, "mesh/6").ends(0);
}

#[test]
fn i01_a_second_uninstall_never_lowers_the_marker() {
    let node = uninstalled("mesh/3");
    node.run(&["uninstall", "--install-id", "mesh/1"]).ends(0);
    install(&node, "mesh/3").ends(4);
    node.run(&["uninstall", "--install-id", "mesh/7"]).ends(0);
    install(&node, "mesh/7").ends(4);
}

#[test]
fn i01_a_marker_that_names_no_install_stands_until_force() {
    for content in [
        &b""[..],
        b"{",
        b"touched by hand",
        br#"{"format":1,"oldestReader":1,"uninstalledAt":1}"#,
        br#"{"format":9,"oldestReader":9}"#,
    ] {
        let node = Node::flannel();
        std::fs::create_dir(node.state()).unwrap();
        std::fs::write(node.marker(), content).unwrap();
        install(&node, "mesh/99").ends(4).says(&["uninstalled", "--force"]);
        node.run(&["--no-wait", "--force"]).ends(0);
        assert!(!node.marker().exists());
    }
}

#[test]
fn i01_the_environment_names_the_install_as_the_flag_does() {
    let node = uninstalled("mesh/3");
    let ran =
        |id: &str| Ran::of(&node.command(&["--no-wait"]).env("AETHER_INSTALL_ID", id).output().unwrap());
    ran("mesh/3").ends(4);
    ran("mesh/4").ends(0);
}

#[test]
fn i01_s02_a_wanted_state_of_a_newer_release_is_left_alone_until_force() {
    let node = Node::flannel();
    let newer = br#"{"format":9,"oldestReader":7,"something":"else"}"#;
    std::fs::write(node.wanted(), newer).unwrap();
    let before = node.tree();
    node.install().ends(4).says(&["newer release", "format 9", "--force"]);
    assert_eq!(node.tree(), before);
    node.run(&["--no-wait", "--force"]).ends(0);
    assert_eq!(node.ours(LIST).len(), 1);
}
