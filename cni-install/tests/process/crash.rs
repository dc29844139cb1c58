//! SIGKILL: at each system call that changes something, and at random times.

use std::path::Path;
use std::time::Duration;

use crate::points;
use crate::support::{Child, FLANNEL, LIST, Node, ours};

/// Kills a run of `args` at each call that touches the node; `check` sees the node after each kill.
fn each_kill(prepare: impl Fn() -> Node, args: &[&str], check: impl Fn(&Node, &str)) {
    for point in points::of(&prepare, args) {
        let node = prepare();
        let (ran, _) = node.strace(&point.inject("signal=KILL"), args);
        assert_eq!(ran.signal, Some(9), "{point}: {ran:#?}");
        check(&node, &format!("killed at {point}"));
    }
}

/// What holds of an install at every moment (I01): whoever sees the list sees all that it needs.
#[track_caller]
fn install_in_order(node: &Node, what: &str) {
    let list = node.get(LIST);
    let plugin = std::fs::read(node.plugin()).ok() == Some(std::fs::read(node.source()).unwrap());
    if list != FLANNEL.as_bytes() {
        assert_eq!(ours(&list).len(), 1, "{what}");
        assert!(plugin && !node.marker().exists(), "{what}");
    }
    if node.wanted().exists() {
        let wanted: serde_json::Value =
            serde_json::from_slice(&std::fs::read(node.wanted()).unwrap()).unwrap();
        assert_eq!(wanted["entry"]["type"], "aether-cni", "{what}");
        assert!(plugin, "{what}");
    }
    assert!(node.temporaries().len() <= 1, "{what}: {:?}", node.temporaries());
}

/// A node whose network is a single configuration, and the list that is derived from it.
const CONF: &str = "10-bridge.conf";
const DERIVED: &str = "00-aether-10-bridge.conf.conflist";
const BRIDGE: &str = r#"{"name":"b","type":"bridge"}"#;

fn single() -> Node {
    let node = Node::empty();
    node.put(CONF, BRIDGE);
    node
}

#[test]
fn i12_i06_an_install_that_derives_a_list_killed_at_any_call_leaves_a_whole_one_or_none() {
    each_kill(single, &["--no-wait"], |node, what| {
        assert_eq!(node.get(CONF), BRIDGE.as_bytes(), "{what}");
        if node.conf().join(DERIVED).exists() {
            assert_eq!(ours(&node.get(DERIVED)).len(), 1, "{what}");
            assert!(node.plugin().exists() && node.wanted().exists(), "{what}");
        }
        node.install().ends(0);
        assert_eq!(ours(&node.get(DERIVED)).len(), 1, "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
    });
}

#[test]
fn i12_i06_an_uninstall_of_a_derived_list_killed_at_any_call_is_completed_by_the_next() {
    let prepare = || {
        let node = single();
        node.install().ends(0);
        std::fs::write(node.state().join("chain.json"), "{}").unwrap();
        node
    };
    each_kill(prepare, &["uninstall"], |node, what| {
        let derived = node.conf().join(DERIVED);
        assert!(derived.exists() || node.marker().exists(), "{what}");
        assert!(node.wanted().exists() || !derived.exists(), "{what}");
        node.uninstall().ends(0);
        assert!(
            !derived.exists() && !node.wanted().exists() && !node.state().join("chain.json").exists(),
            "{what}"
        );
        assert_eq!(node.get(CONF), BRIDGE.as_bytes(), "{what}");
    });
}

/// What holds of an uninstall at every moment: the marker stands before anything goes.
#[track_caller]
fn uninstall_in_order(node: &Node, what: &str) {
    let list = node.get(LIST);
    let stripped = list == FLANNEL.as_bytes();
    if !stripped {
        assert_eq!(ours(&list).len(), 1, "{what}");
    }
    assert!(!stripped || node.marker().exists(), "{what}");
    assert!(node.wanted().exists() || stripped, "{what}");
    assert!(node.plugin().exists() || !node.wanted().exists(), "{what}");
}

#[test]
fn i12_c3_an_install_killed_at_any_call_leaves_the_old_list_or_the_new_one_and_the_next_run_completes() {
    each_kill(Node::flannel, &["--no-wait"], |node, what| {
        install_in_order(node, what);
        node.install().ends(0);
        assert_eq!(ours(&node.get(LIST)).len(), 1, "{what}");
        assert!(node.wanted().exists(), "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
    });
}

#[test]
fn i12_an_install_after_an_uninstall_killed_at_any_call_is_put_right_by_the_next_run() {
    let prepare = || {
        let node = Node::flannel();
        node.install().ends(0);
        node.uninstall().ends(0);
        node.release("v2");
        node
    };
    each_kill(prepare, &["--no-wait", "--install-id", "two"], |node, what| {
        install_in_order_after_uninstall(node, what);
        node.run(&["--no-wait", "--install-id", "two"]).ends(0);
        assert_eq!(ours(&node.get(LIST)).len(), 1, "{what}");
        assert!(!node.marker().exists(), "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
    });
}

#[track_caller]
fn install_in_order_after_uninstall(node: &Node, what: &str) {
    install_in_order(node, what);
    assert!(
        node.marker().exists() || node.wanted().exists(),
        "{what}: the marker goes after the wanted state is there"
    );
}

/// I2: an uninstall after one that crashed half-way.
#[test]
fn i12_i2_an_uninstall_killed_at_any_call_leaves_the_old_list_or_the_new_one_and_the_next_run_completes() {
    let prepare = || {
        let node = Node::flannel();
        node.install().ends(0);
        node
    };
    each_kill(prepare, &["uninstall", "--remove-binary"], |node, what| {
        uninstall_in_order(node, what);
        node.run(&["uninstall", "--remove-binary"]).ends(0);
        assert_eq!(node.get(LIST), FLANNEL.as_bytes(), "{what}");
        assert!(node.marker().exists() && !node.wanted().exists() && !node.plugin().exists(), "{what}");
        assert_eq!(node.temporaries(), [] as [&Path; 0], "{what}");
        node.install().ends(4);
    });
}

/// C3: killed over and over, leftovers do not pile up, and the list is never anything but one of two.
#[test]
fn i12_c3_a_hundred_kills_at_random_times_leave_no_torn_list_and_at_most_one_temporary_file() {
    let node = Node::flannel();
    node.install().ends(0);
    let chained = node.get(LIST);
    node.uninstall().ends(0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    let mut killed = 0;
    for round in 0..100 {
        // xorshift; up to 12 ms, which is about what a whole run takes.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let args: &[&str] = if round % 2 == 0 { &["--no-wait", "--force"] } else { &["uninstall"] };
        let mut child = Child(node.command(args).stderr(std::process::Stdio::null()).spawn().unwrap());
        // pause: the time is what is random here; nothing is synchronised by it.
        std::thread::sleep(Duration::from_micros(random % 12_000));
        let _ = child.0.kill();
        killed += usize::from(!child.0.wait().unwrap().success());
        let list = node.get(LIST);
        assert!(list == chained || list == FLANNEL.as_bytes(), "{}", String::from_utf8_lossy(&list));
        assert!(node.temporaries().len() <= 1, "{:?}", node.temporaries());
    }
    assert!(killed > 10, "only {killed} runs were killed before they ended");
    node.run(&["--no-wait", "--force"]).ends(0);
    assert_eq!(node.get(LIST), chained);
    node.uninstall().ends(0);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    assert_eq!(node.temporaries(), [] as [&Path; 0]);
}
