//! Which file is taken, and what is refused.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{FLANNEL, LIST, Node, chmod};

const SINGLE: &str = r#"{"cniVersion":"0.3.0","name":"b","type":"bridge","bridge":"cni0"}"#;

/// Installs, expecting a refusal that changes nothing at all, not even the state directory.
#[track_caller]
fn refused(node: &Node, words: &[&str]) {
    let before = node.tree();
    node.install().ends(4).says(words);
    assert_eq!(node.tree(), before);
    assert!(!node.state().exists());
}

/// Installs, expecting that it would wait; the list directory's files of others stay as they are.
#[track_caller]
fn waits(node: &Node, words: &[&str]) {
    let others = |node: &Node| -> Vec<_> {
        node.tree()
            .into_iter()
            .filter(|(path, _)| path.starts_with(node.conf()) && *path != node.wanted())
            .collect()
    };
    let before = others(node);
    node.install().ends(3).says(words);
    assert_eq!(others(node), before);
}

/// B6: byte order, not numeric order: `100-` comes before `11-` and `87-`.
#[test]
fn i04_b6_the_first_in_byte_order_is_taken_and_said() {
    let node = Node::empty();
    let list = |name: &str| format!(r#"{{"name":"net-{name}","plugins":[{{"type":"bridge"}}]}}"#);
    for name in ["87-podman.conflist", "100-crio-bridge.conflist", "11-crio-ipv4-bridge.conflist"] {
        node.put(name, list(name));
    }
    node.put("99-loopback.conf", r#"{"name":"lo","type":"loopback"}"#);
    node.install().ends(0).says(&["100-crio-bridge.conflist", "first in byte order of the 4 files"]);
    assert_eq!(node.ours("100-crio-bridge.conflist").len(), 1);
    for other in ["87-podman.conflist", "11-crio-ipv4-bridge.conflist"] {
        assert_eq!(node.get(other), list(other).as_bytes());
    }
}

#[test]
fn i04_a_hidden_name_with_a_loaders_ending_is_loaded_too() {
    let node = Node::flannel();
    node.put(".hidden.conflist", FLANNEL);
    node.install().ends(0).says(&[".hidden.conflist"]);
    assert_eq!(node.ours(".hidden.conflist").len(), 1);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

#[test]
fn i04_names_that_no_loader_takes_are_looked_past() {
    let node = Node::flannel();
    for name in [".aether-cni-entry.bak", "00-x.conflist.tmp", "00-x.conflist~", "00-x.CONFLIST", "00-README"]
    {
        node.put(name, "not a list");
    }
    std::fs::create_dir(node.conf().join("00-dir.conflist")).unwrap();
    node.install().ends(0);
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i04_where_the_first_is_invalid_or_only_loopback_no_other_is_chosen() {
    let node = Node::flannel();
    node.put("05-broken.conflist", "{}");
    waits(&node, &["05-broken.conflist", "refuse"]);
    std::fs::remove_file(node.conf().join("05-broken.conflist")).unwrap();
    for (name, content) in [
        ("05-lo.conf", r#"{"name":"lo","type":"loopback"}"#),
        ("05-lo.conflist", r#"{"name":"lo","plugins":[{"type":"loopback"}]}"#),
    ] {
        let node = Node::flannel();
        node.put(name, content);
        waits(&node, &[name, "only loopback"]);
        assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    }
}

/// B6: the option that asserts which file is meant.
#[test]
fn i04_b6_conf_name_asserts_the_file_and_no_other_is_edited() {
    let node = Node::flannel();
    node.put("05-other.conflist", FLANNEL);
    node.run(&["--no-wait", "--conf-name", LIST]).ends(3).says(&["05-other.conflist", LIST, "--conf-name"]);
    assert_eq!(node.get("05-other.conflist"), FLANNEL.as_bytes());
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    node.run(&["--no-wait", "--conf-name", "05-other.conflist"]).ends(0);
    assert_eq!(node.ours("05-other.conflist").len(), 1);
}

#[test]
fn i04_an_entry_of_ours_in_a_drop_in_is_refused_by_name_and_never_touched() {
    let node = Node::flannel();
    std::fs::create_dir(node.conf().join("cbr0")).unwrap();
    node.put("cbr0/50-aether.conf", r#"{"type":"aether-cni"}"#);
    refused(&node, &["50-aether.conf", "containerd 2"]);
    // An uninstall names it too, and says that it is not finished.
    node.uninstall().ends(1).says(&["cbr0/50-aether.conf", "by hand"]);
    assert_eq!(node.get("cbr0/50-aether.conf"), br#"{"type":"aether-cni"}"#);
    std::fs::remove_file(node.conf().join("cbr0/50-aether.conf")).unwrap();
    node.uninstall().ends(0);
}

#[test]
fn i04_drop_ins_of_others_are_no_hindrance() {
    let node = Node::flannel();
    std::fs::create_dir(node.conf().join("cbr0")).unwrap();
    node.put("cbr0/50-tuning.conf", r#"{"type":"tuning"}"#);
    node.install().ends(0);
    assert_eq!(node.ours(LIST).len(), 1);
}

/// The list that is derived from a configuration of this name.
fn derived(name: &str) -> String {
    format!("00-aether-{name}.conflist")
}

/// B1, B3: the single file is neither renamed nor edited; the runtime loads a list that holds it and ours.
#[test]
fn i06_b1_b3_a_list_is_derived_from_a_single_network_and_goes_at_uninstall() {
    for name in ["10-bridge.conf", "10-bridge.json"] {
        for (conf, version) in [
            (SINGLE.to_owned(), Some("0.3.0")),
            (SINGLE.replace("0.3.0", "1.0.0"), Some("1.0.0")),
            (SINGLE.replace(r#""cniVersion":"0.3.0","#, ""), None),
        ] {
            let node = Node::empty();
            node.put(name, &conf);
            let before = node.tree();
            assert!(node.run(&["--dry-run"]).ends(0).out.contains(&derived(name)));
            assert_eq!(node.tree(), before);
            node.install().ends(0).says(&[name, &derived(name), "derived"]);
            let list: serde_json::Value = serde_json::from_slice(&node.get(&derived(name))).unwrap();
            assert_eq!(
                list.get("cniVersion").and_then(|version| version.as_str()),
                version,
                "absent stays absent"
            );
            assert_eq!((&list["name"], &list["plugins"][0]["type"]), (&"b".into(), &"bridge".into()));
            assert_eq!(node.ours(&derived(name)).len(), 1);
            assert_eq!(node.get(name), conf.as_bytes());
            node.run(&["--check"]).ends(0);
            let chained = node.tree();
            node.install().ends(0);
            assert_eq!(node.tree(), chained);
            node.run(&["uninstall", "--remove-binary"]).ends(0);
            assert_eq!(node.tree(), before);
        }
    }
}

/// B1: with a list and a single file of the same name, the single file sorts first.
#[test]
fn i06_b1_a_single_network_that_sorts_before_a_list_is_what_is_derived_from() {
    let node = Node::flannel();
    node.put("10-flannel.conf", SINGLE);
    node.install().ends(0);
    let first = aether_conflist::load::candidates(
        std::fs::read_dir(node.conf()).unwrap().map(|entry| entry.unwrap().file_name()),
    );
    assert_eq!(first.first().unwrap().to_str().unwrap(), derived("10-flannel.conf"));
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}

/// A14: the derived list follows its source, keeps what others put into it, and goes with it.
#[test]
fn i06_a14_the_derived_list_follows_its_source_and_goes_with_it() {
    let node = Node::empty();
    let (name, list) = ("10-bridge.conf", derived("10-bridge.conf"));
    node.put(name, SINGLE);
    node.install().ends(0);
    let text = String::from_utf8(node.get(&list)).unwrap();
    node.put(&list, text.replace("\"plugins\": [", "\"plugins\": [{\"type\":\"other\"},"));
    node.put(name, SINGLE.replace("cni0", "cni1"));
    node.run(&["--check"]).ends(3);
    node.install().ends(0);
    let text = String::from_utf8(node.get(&list)).unwrap();
    assert!(text.contains("cni1") && text.contains("other") && node.ours(&list).len() == 1, "{text}");
    // Its owner ships a list now.
    std::fs::remove_file(node.conf().join(name)).unwrap();
    node.put(LIST, FLANNEL);
    node.run(&["--check"]).ends(3);
    node.install().ends(0).says(&["removed", &list]);
    assert!(!node.conf().join(&list).exists());
    assert_eq!(node.ours(LIST).len(), 1);
    // And nothing at all is left.
    node.put(name, SINGLE);
    std::fs::remove_file(node.list()).unwrap();
    node.install().ends(0);
    std::fs::remove_file(node.conf().join(name)).unwrap();
    node.install().ends(3).says(&["removed", &list]);
    assert!(!node.conf().join(&list).exists());
}

#[test]
fn i06_where_no_derived_name_sorts_first_it_is_refused_with_what_to_do() {
    let node = Node::empty();
    node.put("00-a.conf", SINGLE);
    refused(&node, &["00-a.conf", "\"bridge\"", "does not sort before it", "rename"]);
}

/// B9: no network of our plugin alone is ever made, whatever is there.
#[test]
fn i06_b9_no_file_is_created_in_net_d_but_the_wanted_state() {
    let node = Node::empty();
    node.install().ends(3);
    let names: Vec<_> =
        std::fs::read_dir(node.conf()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".aether-cni-entry"]);
}

#[test]
fn i02_a_list_behind_a_symbolic_link_is_edited_beside_itself_and_the_link_stays() {
    for relative in [true, false] {
        let node = Node::empty();
        let target = node.root().join("elsewhere.conflist");
        std::fs::write(&target, FLANNEL).unwrap();
        chmod(&target, 0o640);
        xattr::set(&target, "user.x", b"y").unwrap();
        let link = if relative { "../elsewhere.conflist".into() } else { target.clone() };
        symlink(&link, node.list()).unwrap();
        let before = node.tree();
        node.install().ends(0);
        assert_eq!(std::fs::read_link(node.list()).unwrap(), link);
        assert_eq!(node.ours(LIST).len(), 1);
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o7777, 0o640);
        assert_eq!(xattr::get(&target, "user.x").unwrap().as_deref(), Some(&b"y"[..]));
        node.run(&["--check"]).ends(0);
        node.run(&["uninstall", "--remove-binary"]).ends(0);
        assert_eq!(node.tree(), before);
        assert_eq!(std::fs::read(&target).unwrap(), FLANNEL.as_bytes());
    }
}

#[test]
fn i02_a_link_out_of_what_is_mounted_is_refused_with_what_to_do() {
    let node = Node::empty();
    symlink("/nowhere/at/all.conflist", node.list()).unwrap();
    refused(
        &node,
        &["symbolic link", "/nowhere/at/all.conflist", "outside what is mounted", "mount its directory"],
    );
    assert_eq!(std::fs::read_link(node.list()).unwrap(), std::path::Path::new("/nowhere/at/all.conflist"));
}

#[test]
fn i07_what_is_at_the_lists_path_but_is_no_list_is_left_alone() {
    let node = Node::empty();
    symlink("/nowhere", node.conf().join("00-dangling.conflist")).unwrap();
    waits(&node, &["00-dangling.conflist", "/nowhere"]);
    let node = Node::empty();
    symlink(node.bin(), node.conf().join("00-dir.conflist")).unwrap();
    waits(&node, &["00-dir.conflist"]);
    let node = Node::empty();
    let pipe = node.conf().join("00-pipe.conflist");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    node.install().ends(3).says(&["00-pipe.conflist", "no regular file"]);
    let node = Node::flannel();
    symlink("00-loop.conflist", node.conf().join("00-loop.conflist")).unwrap();
    waits(&node, &["00-loop.conflist"]);
}

/// C4 (comments, trailing commas), C5 (BOM), C10 (`Plugins` as an own key), C15 (wrong shapes), and what a half-written
/// file looks like: never touched, and the place named.
#[test]
fn i07_c4_c5_c10_c15_what_libcni_refuses_is_left_alone_and_its_place_named() {
    let broken: [(&[u8], &str); 26] = [
        (b"", "05-x.conflist"),
        (b" \n", "05-x.conflist"),
        (b"{", "line 1"),
        (b"{}", "05-x.conflist"),
        (b"[]", "05-x.conflist"),
        (b"null", "05-x.conflist"),
        (b"\"x\"", "05-x.conflist"),
        (b"\xef\xbb\xbf{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"}]}", "line 1, column 1"),
        (b"// c\n{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"}]}", "line 1, column 1"),
        (b"{\"name\":\"a\",\n/* c */\"plugins\":[{\"type\":\"x\"}]}", "line 2, column 1"),
        (b"{\"name\":\"a\",\n\"plugins\":[{\"type\":\"x\"},]}", "line 2, column 24"),
        (b"{\"name\":\"a\",\"plugins\":[{\"type\":\"x\",}]}", "line 1, column 35"),
        (b"{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"}]} x", "line 1, column 39"),
        (b"{\"name\":\"a\",\"plugins\":[{\"type\":\"x\"}]}{}", "line 1, column 38"),
        (b"{\"name\":\"a\"}", "plugins"),
        (b"{\"name\":\"a\",\"Plugins\":[{\"type\":\"x\"}]}", "plugins"),
        (b"{\"name\":\"a\",\"plugins\":null}", "plugins"),
        (b"{\"name\":\"a\",\"plugins\":{}}", "plugins"),
        (b"{\"name\":\"a\",\"plugins\":[]}", "plugins"),
        (b"{\"name\":\"a\",\"plugins\":[1]}", "05-x.conflist"),
        (b"{\"name\":\"a\",\"plugins\":[null]}", "05-x.conflist"),
        (b"{\"name\":\"a\",\"plugins\":[{}]}", "type"),
        (b"{\"name\":\"a\",\"plugins\":[{\"type\":1}]}", "type"),
        (b"{\"plugins\":[{\"type\":\"x\"}]}", "name"),
        (b"{\"name\":1,\"plugins\":[{\"type\":\"x\"}]}", "name"),
        (b"{\"name\":\"a\",\"cniVersion\":1,\"plugins\":[{\"type\":\"x\"}]}", "cniVersion"),
    ];
    for (bytes, place) in broken {
        let node = Node::empty();
        node.put("05-x.conflist", bytes);
        waits(&node, &["05-x.conflist", "left alone", place]);
        assert_eq!(node.get("05-x.conflist"), bytes);
        node.uninstall().ends(0);
        assert_eq!(node.get("05-x.conflist"), bytes);
    }
}

/// A11: the primary is lost, and a list of ours alone would give no pod a network.
#[test]
fn i07_a11_a_list_of_ours_alone_is_refused_and_not_written() {
    let node = Node::empty();
    node.put("10-x.conflist", r#"{"name":"n","plugins":[{"type":"aether-cni"}]}"#);
    refused(&node, &["10-x.conflist", "no entry but ours"]);
}

/// A list that was broken after the install: the uninstall says where ours is left, and finishes once it is whole.
#[test]
fn i07_uninstall_names_a_broken_list_that_mentions_ours() {
    let node = Node::flannel();
    node.install().ends(0);
    let good = node.get(LIST);
    let mut broken = good.clone();
    broken.extend_from_slice(b"}");
    node.put(LIST, &broken);
    node.uninstall().ends(1).says(&[LIST, "aether-cni", "correct it"]);
    assert_eq!(node.get(LIST), broken);
    assert!(node.marker().exists() && node.wanted().exists());
    node.put(LIST, &good);
    node.uninstall().ends(0);
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
    assert!(!node.wanted().exists());
}

#[test]
fn i13_a_first_network_of_multus_is_a_clear_refusal() {
    for (name, plugin) in
        [("00-multus.conf", "multus-shim"), ("00-multus.conf", "multus"), ("08-error-cni.conf", "error-cni")]
    {
        let node = Node::flannel();
        node.put(name, format!(r#"{{"cniVersion":"1.1.0","name":"multus-cni-network","type":"{plugin}"}}"#));
        refused(&node, &[name, plugin, "OpenShift", "cannot be chained"]);
    }
}

/// F3, F4: microk8s, Rancher Desktop and others are reached by flags or variables.
#[test]
fn i13_paths_come_by_profile_flag_or_environment() {
    let node = Node::flannel();
    let output = std::process::Command::new(crate::support::PROGRAM)
        .env_clear()
        .env("AETHER_CNI_CONF_DIR", node.conf())
        .env("AETHER_CNI_BIN_DIR", node.bin())
        .env("AETHER_STATE_DIR", node.state())
        .env("AETHER_PLUGIN_SOURCE", node.source())
        .env("AETHER_NO_WAIT", "true")
        .env("AETHER_IGNORE_NAMESPACES", "b,a,")
        .env("AETHER_RELEASE_NAMESPACE", "")
        .output()
        .unwrap();
    crate::support::Ran::of(&output).ends(0);
    assert_eq!(node.ours(LIST)[0]["ignoredNamespaces"], serde_json::json!(["a", "b"]));
    assert!(node.ours(LIST)[0].get("releaseNamespace").is_none());
    for (profile, conf) in [("k3s", "/var/lib/rancher/k3s/agent/etc/cni/net.d"), ("gke", "/etc/cni/net.d")] {
        let ran = std::process::Command::new(crate::support::PROGRAM)
            .env_clear()
            .args(["--check", "--profile", profile])
            .output()
            .unwrap();
        let ran = crate::support::Ran::of(&ran);
        assert!(ran.out.contains(conf), "{ran:#?}");
    }
}

#[test]
fn i13_a_wrong_command_line_is_code_2_and_changes_nothing() {
    let node = Node::flannel();
    let before = node.tree();
    for (args, word) in [
        (&["--add-deadline-seconds", "31"][..], "30"),
        (&["--add-deadline-seconds", "0"], "1"),
        (&["--agent-socket", "relative.sock"], "absolute"),
        (&["--conf-name", "a/b.conflist"], "--conf-name"),
        (&["--conf-name", "calico-kubeconfig"], ".conflist"),
        (&["--ignore-namespace", "Not_One"], "namespace"),
        (&["--profile", "openshift"], "k3s"),
        (&["--remove-binary"], "uninstall"),
        (&["uninstall", "--check"], "--check"),
        (&["--check", "--dry-run"], "cannot be used with"),
        (&["--install-id", ""], "empty"),
        (&["--no-such-flag"], "--no-such-flag"),
    ] {
        node.run(args).ends(2).says(&[word]);
    }
    assert_eq!(node.tree(), before);
}
