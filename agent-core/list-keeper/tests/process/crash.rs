//! Killed, and failed by the kernel, at each system call that touches the node.
//!
//! The test runs itself again as a child under `strace`; the child does one operation.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use aether_domain::chain::Healthy;
use aether_list_keeper::Recalled;

use crate::support::{BINARY, ENTRY, FLANNEL, LIST, Node, chained, chained_text, digest, is};

const VICTIM: &str = "AETHER_TEST_VICTIM";
const OPERATION: &str = "AETHER_TEST_OPERATION";
const CALLS: &str = "?open,openat,read,write,fsync,?rename,?renameat,?renameat2,?unlink,?unlinkat,fchmod,fchown,flock,\
                     getdents64,fcntl,close";
const CONF: &str = "05-b.conf";
const DERIVED: &str = "00-aether-05-b.conf.conflist";
const BRIDGE: &str = "{\"name\":\"b\",\"type\":\"bridge\"}";

fn healthy() -> Healthy {
    Healthy::new(serde_json::from_str(ENTRY).unwrap(), None, None, 1)
}

/// The child: one operation, whose outcome is the exit code.
#[test]
fn victim() {
    let Some(root) = std::env::var_os(VICTIM) else { return };
    let root = Path::new(&root);
    let keeper = Node::at(root);
    let outcome = match std::env::var(OPERATION).unwrap().as_str() {
        "replace" => {
            keeper.replace_list(LIST, &digest(FLANNEL.as_bytes()), &chained(FLANNEL, ENTRY), || true)
        }
        "derive" => keeper.derive_list(CONF, &digest(BRIDGE.as_bytes()), || true),
        "restore" => keeper.restore_plugin(&root.join("image/aether-cni"), || true),
        "remember" => keeper.remember(&healthy(), || true),
        other => panic!("{other}"),
    };
    assert_eq!(outcome.name(), "done", "{outcome:?}");
}

fn strace(node: &Node, operation: &str, options: &[String]) -> (bool, String) {
    let trace = node.root().join("trace");
    let status = Command::new("strace")
        .args(["-f", "-qq", "-y", "-o"])
        .arg(&trace)
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "crash::victim", "--test-threads=1"])
        .env(VICTIM, node.root())
        .env(OPERATION, operation)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("this test needs strace: apt-get install strace");
    (status.success(), std::fs::read_to_string(&trace).unwrap_or_default())
}

/// The n-th call of one name by the thread that works, for each that names the node's directories.
fn points(node: &Node, operation: &str) -> Vec<(String, usize)> {
    let (done, trace) = strace(node, operation, &[format!("-etrace={CALLS}")]);
    assert!(done, "{trace}");
    let mut counts = BTreeMap::new();
    let mut points = Vec::new();
    for line in trace.lines() {
        let Some((head, _)) = line.split_once('(') else { continue };
        let Some((thread, call)) = head.split_once(' ') else { continue };
        let nth = counts.entry((thread.to_owned(), call.trim().to_owned())).or_insert(0);
        *nth += 1;
        if line.contains(&*node.root().to_string_lossy()) && !line.contains("/trace") {
            points.push((call.trim().to_owned(), *nth));
        }
    }
    assert!(points.len() > 15, "too few calls in {trace}");
    points
}

/// Does the operation with `what` injected at each point; `check` sees the node afterwards, and once more when it was done
/// again in peace.
fn each(
    operation: &str,
    prepare: impl Fn() -> Node,
    what: &str,
    check: impl Fn(&Node, &str),
    whole: impl Fn(&Node),
) {
    for (call, nth) in points(&prepare(), operation) {
        let node = prepare();
        let (_, trace) = strace(
            &node,
            operation,
            &[format!("-etrace={call}"), format!("-einject={call}:{what}:when={nth}")],
        );
        let shown = format!("{operation}, {what} at {call} {nth}");
        assert!(
            trace.contains("INJECTED") || trace.contains("SIGKILL"),
            "nothing was injected: {shown}: {trace}"
        );
        assert!(node.temporaries().len() <= 1, "{shown}: {:?}", node.temporaries());
        check(&node, &shown);
        let again = match operation {
            "replace" if node.get(LIST) == FLANNEL => node.repair(ENTRY),
            "derive" => node.derive(CONF),
            "restore" => node.keeper().restore_plugin(&node.source(), || true),
            "remember" => node.keeper().remember(&healthy(), || true),
            _ => node.derive(LIST),
        };
        is(&again, "done", &[]);
        whole(&node);
        assert!(node.temporaries().iter().all(|path| path.starts_with(node.root().join("bin"))), "{shown}");
    }
}

fn single() -> Node {
    let node = Node::flannel();
    node.put(CONF, BRIDGE);
    node
}

fn list_is_old_or_new(node: &Node, what: &str) {
    let list = node.get(LIST);
    assert!(list == FLANNEL || list == chained_text(FLANNEL, ENTRY), "{what}: {list}");
}

fn derived_is_whole_or_absent(node: &Node, what: &str) {
    assert_eq!((node.get(CONF).as_str(), node.get(LIST).as_str()), (BRIDGE, FLANNEL), "{what}");
    if node.has(DERIVED) {
        assert!(node.get(DERIVED).contains("aether-cni") && node.get(DERIVED).ends_with("]\n}\n"), "{what}");
    }
}

fn plugin_is_whole_or_absent(node: &Node, what: &str) {
    assert!(std::fs::read(node.plugin()).map_or(true, |bytes| bytes == BINARY), "{what}");
}

fn memory_is_whole_or_absent(node: &Node, what: &str) {
    let recalled = node.keeper().recall();
    assert!(matches!(recalled, Recalled::Nothing | Recalled::Known(_)), "{what}: {recalled:?}");
}

fn chained_list(node: &Node) {
    assert_eq!(node.get(LIST), chained_text(FLANNEL, ENTRY));
}

#[test]
fn i12_c02_a_repair_killed_at_any_call_leaves_the_old_list_or_the_new_one_and_the_next_completes() {
    each("replace", Node::flannel, "signal=KILL", list_is_old_or_new, chained_list);
}

#[test]
fn i12_c02_a_repair_whose_call_fails_leaves_the_old_list_or_the_new_one() {
    each("replace", Node::flannel, "error=EIO", list_is_old_or_new, chained_list);
}

#[test]
fn i12_i06_a_derivation_killed_at_any_call_leaves_a_whole_list_or_none() {
    each("derive", single, "signal=KILL", derived_is_whole_or_absent, |node| assert!(node.has(DERIVED)));
}

#[test]
fn i12_c10_a_restored_binary_is_whole_or_absent_wherever_it_is_killed() {
    let whole = |node: &Node| assert_eq!(std::fs::read(node.plugin()).unwrap(), BINARY);
    each("restore", Node::flannel, "signal=KILL", plugin_is_whole_or_absent, whole);
}

#[test]
fn i12_c03_the_memory_is_whole_or_absent_wherever_it_is_killed() {
    let whole = |node: &Node| assert_eq!(node.keeper().recall(), Recalled::Known(healthy()));
    each("remember", Node::flannel, "signal=KILL", memory_is_whole_or_absent, whole);
}
