//! The bytes of the list, its mode, owner and xattrs, and what the entry says.

use std::os::unix::fs::MetadataExt as _;

use crate::support::{FLANNEL, LIST, Node, chmod};

/// The lists of I02: each goes in, gets one object, and comes out as it was.
fn lists() -> Vec<(&'static str, Vec<u8>)> {
    let kindnet = "\n\t{\n\t\t\"cniVersion\": \"0.3.1\",\n\t\t\"name\": \"kindnet\",\n\t\t\"plugins\": [\n\t\t{\n\t\t\t\"type\": \"ptp\"\n\t\t},\n\t\t{\n\t\t\t\"type\": \"portmap\",\n\t\t\t\"capabilities\": {\n\t\t\t\t\"portMappings\": true\n\t\t\t}\n\t\t}\n\t\t]\n\t}";
    let odd = r#"{"z":9007199254740993,"name":"a","n":[1.0,1e3,-0],"plugins":[{"type":"x","s":"\u003c<é\ud83d\ude00\/","a":1}],"a":null}"#;
    let deep = format!(
        r#"{{"name":"d","plugins":[{{"type":"x","deep":{}1{}}}]}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    vec![
        ("flannel", FLANNEL.into()),
        ("no final newline", FLANNEL.trim_end().into()),
        ("CRLF", FLANNEL.replace('\n', "\r\n").into()),
        ("tabs", FLANNEL.replace("  ", "\t").into()),
        ("kindnet's leading newline", kindnet.into()),
        ("one line", r#"{"name":"cbr0","plugins":[{"type":"flannel"}]}"#.into()),
        (
            "spaces everywhere",
            "  {  \"name\" : \"a\" , \"plugins\" : [ { \"type\" : \"x\" } ]  }  \n\n".into(),
        ),
        ("numbers and escapes", odd.into()),
        ("200 levels", deep.into()),
        ("not UTF-8", b"{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",\"s\":\"\xff\xfe\"}]}".to_vec()),
        (
            "no cniVersion",
            r#"{"name":"a","plugins":[{"type":"flannel"},{"type":"portmap","snat":true}]}"#.into(),
        ),
        (
            "duplicate plugins, the last one winning",
            r#"{"name":"a","plugins":[{"type":"old"}],"plugins":[{"type":"new"}]}"#.into(),
        ),
        ("Type for type", r#"{"name":"a","plugins":[{"Type":"x","type":"y"}]}"#.into()),
    ]
}

/// B4 (no cniVersion), C7 (leading newline, tabs, CRLF, no final newline), C8 (numbers, escapes, key order).
#[test]
fn i02_i07_b4_c7_c8_install_then_uninstall_gives_the_bytes_back_and_install_only_inserts() {
    for (what, bytes) in lists() {
        let node = Node::empty();
        node.put(LIST, &bytes);
        node.install().ends(0);
        let edited = node.get(LIST);
        let shown = String::from_utf8_lossy(&edited).into_owned();
        assert!(shown.contains("\"aether-cni\""), "{what}: {shown}");
        // One insertion: what is before and after it is the original.
        let before = bytes.iter().zip(&edited).take_while(|(a, b)| a == b).count();
        let after = bytes.iter().rev().zip(edited.iter().rev()).take_while(|(a, b)| a == b).count();
        assert!(before + after >= bytes.len(), "{what}: {shown}");
        node.install().ends(0);
        assert_eq!(node.get(LIST), edited, "{what}");
        node.uninstall().ends(0);
        assert_eq!(node.get(LIST), bytes, "{what}");
    }
}

/// F7: a label survives the rewrite.
#[test]
fn i02_i08_f7_mode_owner_and_xattrs_stay_through_install_and_uninstall() {
    let node = Node::flannel();
    chmod(&node.list(), 0o604);
    std::os::unix::fs::chown(node.list(), Some(12), Some(34)).unwrap();
    xattr::set(node.list(), "user.label", b"system_u:object_r:etc_t").unwrap();
    let carried = || {
        let meta = std::fs::metadata(node.list()).unwrap();
        (meta.mode() & 0o7777, meta.uid(), meta.gid(), xattr::get(node.list(), "user.label").unwrap())
    };
    let before = carried();
    assert_eq!((before.0, before.1, before.2), (0o604, 12, 34));
    node.install().ends(0);
    assert_eq!(carried(), before);
    node.uninstall().ends(0);
    assert_eq!(carried(), before);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

#[test]
fn i08_files_of_ours_are_readable_by_root_alone() {
    let node = Node::flannel();
    node.install().ends(0);
    assert_eq!(std::fs::metadata(node.wanted()).unwrap().mode() & 0o7777, 0o600);
    node.uninstall().ends(0);
    assert_eq!(std::fs::metadata(node.marker()).unwrap().mode() & 0o7777, 0o600);
}

#[test]
fn i09_the_entry_stands_at_the_end_and_says_what_the_flags_say() {
    let node = Node::flannel();
    node.run(&[
        "--no-wait",
        "--agent-socket",
        "/run/other/cni.sock",
        "--ignore-namespace",
        "b",
        "--ignore-namespace",
        "a",
        "--release-namespace",
        "mesh",
        "--managed",
        "opt-in",
        "--add-deadline-seconds",
        "9",
    ])
    .ends(0);
    let list: serde_json::Value = serde_json::from_slice(&node.get(LIST)).unwrap();
    let expected = serde_json::json!({
        "name": "aether",
        "type": "aether-cni",
        "agentSocket": "/run/other/cni.sock",
        "stateDir": node.state(),
        "addDeadlineSeconds": 9,
        "ignoredNamespaces": ["a", "b"],
        "releaseNamespace": "mesh",
        "managed": "opt-in",
        "capabilities": {"io.kubernetes.cri.pod-annotations": true, "portMappings": true},
    });
    assert_eq!(list["plugins"].as_array().unwrap().last().unwrap(), &expected);
}

#[test]
fn i09_an_older_entry_is_replaced_in_place_and_a_double_one_goes() {
    let node = Node::empty();
    let old = r#"{"name":"n","plugins":[{"type":"flannel"},{"type":"aether-cni","old":true},{"type":"istio-cni"}]}"#;
    node.put(LIST, old);
    node.install().ends(0);
    let types = |node: &Node| -> Vec<String> {
        let list: serde_json::Value = serde_json::from_slice(&node.get(LIST)).unwrap();
        list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["type"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(types(&node), ["flannel", "aether-cni", "istio-cni"]);
    assert_eq!(node.ours(LIST)[0]["name"], "aether");
    let double =
        r#"{"name":"n","plugins":[{"type":"flannel"},{"type":"aether-cni","a":1},{"type":"aether-cni"}]}"#;
    node.put(LIST, double);
    node.install().ends(0);
    assert_eq!(types(&node), ["flannel", "aether-cni"]);
}

/// C10: libcni takes any case of a struct's key, so an entry with `Type` is ours too, and is not doubled.
#[test]
fn i09_c10_an_entry_of_ours_in_another_spelling_is_ours() {
    let node = Node::empty();
    node.put(
        LIST,
        r#"{"name":"n","plugins":[{"type":"flannel"},{"Type":"aether-cni","type":"aether-cni"}]}"#,
    );
    node.install().ends(0);
    assert_eq!(node.ours(LIST).len(), 1);
    node.uninstall().ends(0);
    assert!(!String::from_utf8(node.get(LIST)).unwrap().contains("aether-cni"));
}

#[test]
fn i10_the_wanted_state_holds_the_entry_as_in_the_list_the_hash_the_id_and_the_time() {
    let node = Node::flannel();
    node.run(&["--no-wait", "--install-id", "mesh/1"]).ends(0);
    let wanted: serde_json::Value = serde_json::from_slice(&std::fs::read(node.wanted()).unwrap()).unwrap();
    assert_eq!(wanted["format"], 1);
    assert_eq!(wanted["oldestReader"], 1);
    assert_eq!(wanted["entry"], node.ours(LIST)[0]);
    assert_eq!(wanted["installId"], "mesh/1");
    let hash = std::process::Command::new("sha256sum").arg(node.plugin()).output().unwrap();
    assert_eq!(wanted["pluginSha256"], String::from_utf8(hash.stdout).unwrap().split(' ').next().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(now - wanted["firstInstalled"].as_u64().unwrap() < 60);
    // No loader takes its name: the directory's first file is still flannel's.
    node.run(&["--dry-run"]).ends(0);
}
