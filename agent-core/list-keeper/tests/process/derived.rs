//! Lists derived from a single configuration (I06).

use std::os::unix::fs::MetadataExt as _;

use crate::support::{ENTRY, FLANNEL, LIST, NEWER, Node, chained_text, digest, is};

const CONF: &str = "10-bridge.conf";
const DERIVED: &str = "00-aether-10-bridge.conf.conflist";
const BRIDGE: &str = "{ \"name\":\"br\", \"cniVersion\":\"0.3.0\", \"type\":\"bridge\", \"mtu\": 1400 }\n";

fn types(node: &Node) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_str(&node.get(DERIVED)).unwrap();
    list["plugins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["type"].as_str().unwrap().to_owned())
        .collect()
}

fn derived() -> Node {
    let node = Node::empty();
    node.put(CONF, BRIDGE);
    is(&node.derive(CONF), "done", &[DERIVED]);
    node
}

#[test]
fn i06_b1_b3_a_single_configuration_stays_and_a_list_before_it_holds_it_and_ours() {
    let node = derived();
    assert_eq!(node.get(CONF), BRIDGE);
    let list: serde_json::Value = serde_json::from_str(&node.get(DERIVED)).unwrap();
    assert_eq!((&list["name"], &list["cniVersion"]), (&"br".into(), &"0.3.0".into()));
    assert!(node.get(DERIVED).contains(BRIDGE.trim()));
    assert_eq!(types(&node), ["bridge", "aether-cni"]);
    let mode = std::fs::metadata(node.conf().join(DERIVED)).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600, "I08: a new file");
    let before = std::fs::metadata(node.conf().join(DERIVED)).unwrap().ino();
    is(&node.derive(DERIVED), "done", &["what it should be"]);
    assert_eq!(std::fs::metadata(node.conf().join(DERIVED)).unwrap().ino(), before, "not written again");
}

#[test]
fn i06_a14_it_follows_its_source_and_keeps_foreign_entries() {
    let node = derived();
    let with = node.get(DERIVED).replace("\"plugins\": [", "\"plugins\": [\n    {\"type\":\"other\"},");
    node.put(DERIVED, with);
    node.put(CONF, BRIDGE.replace("1400", "9000"));
    is(&node.derive(DERIVED), "done", &[]);
    assert_eq!(types(&node), ["bridge", "other", "aether-cni"]);
    assert!(node.get(DERIVED).contains("9000"));
}

#[test]
fn i06_a_stripped_damaged_or_removed_derived_list_is_derived_again() {
    let node = derived();
    let good = node.get(DERIVED);
    for bad in [
        "",
        "{",
        "{\"name\":\"br\",\"plugins\":[{\"type\":\"bridge\"}]}",
        &good.replace("\"v\": 1", "\"v\": 7"),
    ] {
        node.put(DERIVED, bad);
        is(&node.derive(DERIVED), "done", &[]);
        assert_eq!(types(&node), ["bridge", "aether-cni"], "{bad}");
    }
    std::fs::remove_file(node.conf().join(DERIVED)).unwrap();
    is(&node.derive(CONF), "done", &[]);
    assert_eq!(node.get(DERIVED), good);
}

#[test]
fn i06_a_new_wanted_entry_goes_into_it() {
    let node = derived();
    node.want(NEWER);
    is(&node.derive(DERIVED), "done", &[]);
    assert!(
        node.get(DERIVED).contains("\"v\": 2") || node.get(DERIVED).contains("\"v\":2"),
        "{}",
        node.get(DERIVED)
    );
    assert_eq!(types(&node), ["bridge", "aether-cni"]);
}

#[test]
fn i06_it_goes_with_its_source() {
    let node = derived();
    std::fs::remove_file(node.conf().join(CONF)).unwrap();
    is(&node.derive(DERIVED), "done", &["removed", DERIVED]);
    assert!(!node.has(DERIVED));
}

#[test]
fn i06_c05_a_foreign_list_that_comes_first_gets_ours_before_the_derived_one_goes() {
    let node = derived();
    node.put("05-x.conflist", FLANNEL);
    is(&node.derive(DERIVED), "done", &["05-x.conflist", "removed"]);
    assert_eq!(node.get("05-x.conflist"), chained_text(FLANNEL, ENTRY));
    assert!(!node.has(DERIVED));
    assert_eq!(node.get(CONF), BRIDGE);
    // And where the list is replaced by itself.
    let node = derived();
    node.put("00-a.conflist", FLANNEL);
    let list = chained_text(FLANNEL, ENTRY);
    let outcome =
        node.keeper().replace_list("00-a.conflist", &digest(FLANNEL.as_bytes()), list.as_bytes(), || true);
    is(&outcome, "done", &["removed"]);
    assert!(!node.has(DERIVED));
}

#[test]
fn i06_c04_a_foreign_file_that_comes_first_but_is_half_written_is_waited_for() {
    for (name, half) in [("05-x.conflist", "{\"name\":\"x\","), ("05-x.conf", "")] {
        let node = derived();
        node.put(name, half);
        let good = node.get(DERIVED);
        is(&node.derive(DERIVED), "conflict", &[name]);
        assert_eq!(node.get(DERIVED), good);
    }
    let node = derived();
    let good = node.get(DERIVED);
    node.put(CONF, "");
    is(&node.derive(DERIVED), "conflict", &[CONF]);
    assert_eq!(node.get(DERIVED), good, "its source is being written");
}

#[test]
fn i06_another_configuration_that_comes_first_is_derived_instead() {
    let node = derived();
    node.put("05-y.json", BRIDGE.replace("br", "y"));
    is(&node.derive(DERIVED), "done", &["00-aether-05-y.json.conflist", "removed", DERIVED]);
    assert!(node.has("00-aether-05-y.json.conflist") && !node.has(DERIVED));
}

#[test]
fn i06_i13_what_cannot_be_derived_is_a_clear_refusal() {
    for (name, conf, words) in [
        ("00-a.conf", BRIDGE, "does not sort before it"),
        (CONF, "{\"name\":\"m\",\"type\":\"multus-shim\"}", "Multus"),
        (CONF, "{\"name\":\"l\",\"type\":\"loopback\"}", "loopback"),
    ] {
        let node = Node::empty();
        node.put(name, conf);
        is(&node.derive(name), "refused", &[words]);
        assert_eq!(std::fs::read_dir(node.conf()).unwrap().count(), 2, "nothing was written");
    }
}

#[test]
fn i06_c02_a_source_that_changes_meanwhile_stays_and_nothing_is_written() {
    let node = Node::empty();
    node.put(CONF, BRIDGE);
    is(&node.keeper().derive_list(CONF, &digest(b"other"), || true), "conflict", &["was changed"]);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let still = || {
        if asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            node.put(CONF, BRIDGE.replace("1400", "1"));
        }
        true
    };
    is(&node.keeper().derive_list(CONF, &digest(BRIDGE.as_bytes()), still), "conflict", &["was changed"]);
    assert!(!node.has(DERIVED) && node.temporaries().is_empty());
}

#[test]
fn i14_a_foreign_list_is_never_taken_for_a_derived_one() {
    let node = Node::flannel();
    for foreign in ["00-aether.conflist", "00-aether-x.conflist"] {
        node.put(foreign, FLANNEL);
    }
    is(&node.derive("00-aether-x.conflist"), "done", &[]);
    assert!(node.has("00-aether-x.conflist") && node.has("00-aether.conflist") && node.has(LIST));
}
