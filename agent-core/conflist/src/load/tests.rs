use super::*;

fn names(names: &[&str]) -> Vec<String> {
    candidates(names).into_iter().map(|name| name.into_string().expect("UTF-8")).collect()
}

#[test]
fn i04_the_order_is_that_of_bytes_and_hidden_names_count() {
    let order =
        names(&["b.conf", "a.json", "B.conflist", ".z.conflist", "\u{e9}.conf", "100-x.conf", "11-x.conf"]);
    assert_eq!(
        order,
        [".z.conflist", "100-x.conf", "11-x.conf", "B.conflist", "a.json", "b.conf", "\u{e9}.conf"]
    );
    assert_eq!(names(&[".conf", ".conflist", ".json"]), [".conf", ".conflist", ".json"]);
}

#[test]
fn i04_i14_other_peoples_files_are_no_candidates() {
    let others = [
        "calico-kubeconfig",
        "ZZZ-linkerd-cni-kubeconfig",
        "10-x.conflist.cilium_bak",
        ".kubernetes-cni-keep",
        ".10-flannel.conflist.tmp",
        ".tmp-kuberouter-cfg",
        "10-kindnet.conflist.temp",
        "ovnkube-1",
        "cni.lock",
        "README",
        ".10-x.conflist.swp",
        "10-x.conflist~",
        "#10-x.conflist#",
        "x.CONFLIST",
        "x.conf ",
        "conf",
        "xconf",
        aether_domain::paths::WANTED,
        ".aether-tmp-10-x",
    ];
    assert!(names(&others).is_empty(), "{:?}", names(&others));
}

#[test]
fn i07_a_refusal_names_file_place_version_and_reason() {
    let refusal =
        List::load("10-x.conflist", b"{\n  \"name\": \"n\",\n  \"plugins\": [],\n}", DropIns::none())
            .expect_err("a trailing comma");
    let by = "refused by libcni 1.1 (containerd 1) and libcni 1.3 (containerd 2)";
    assert_eq!(
        refusal.to_string(),
        format!("10-x.conflist, line 3, column 16: {by}: a comma before '}}', which JSON does not allow")
    );
    let list = br#"{"name":"n","disableCheck":"true","plugins":[{"type":"a"}]}"#;
    let refusal = List::load("x.conflist", list, DropIns::none()).expect_err("libcni 1.1 wants a boolean");
    assert_eq!((refusal.by, refusal.at), (By::Libcni1_1, Some(Position { line: 1, column: 28 })));
    let list = br#"{"name":"n","plugins":[{"type":"a"}]}"#;
    let broken = DropIn { file_name: "20.conf".into(), content: Content::Bytes(b"{\n}".to_vec()) };
    let refusal =
        List::load("x.conflist", list, DropIns::Files(vec![broken])).expect_err("a drop-in without type");
    assert_eq!((refusal.by, refusal.file.to_str()), (By::Libcni1_3, Some("n/20.conf")));
    let unread = DropIn { file_name: "20.conf".into(), content: Content::Unread("no permission".to_owned()) };
    let refusal = List::load("x.conflist", list, DropIns::Files(vec![unread])).expect_err("we cannot tell");
    assert_eq!(refusal.by, By::Us);
}

#[test]
fn i07_c10_our_entry_is_known_by_its_type_as_libcni_sees_it() {
    let ours = |entry: &str| {
        let list = format!(r#"{{"name":"n","plugins":[{{"type":"a"}},{entry}]}}"#);
        List::load("x.conflist", list, DropIns::none()).expect("a valid list").ours().count() == 1
    };
    assert!(ours(r#"{"Type":"aether-cni"}"#));
    assert!(ours(r#"{"TYPE":"aether-cni","type":null}"#));
    assert!(ours(r#"{"t\u0079pe":"aether\u002dcni"}"#));
    assert!(ours(r#"{"type":"x","type":"aether-cni"}"#));
    assert!(!ours(r#"{"Type":"aether-cni","type":"x"}"#), "libcni reads the keys in byte order");
    assert!(!ours(r#"{"type":"x","name":"aether-cni"}"#));
    assert!(!ours(r#"{"type":"AETHER-CNI"}"#));
}

#[test]
fn i04_drop_ins_are_read_where_libcni_1_3_reads_them() {
    let dir = Path::new("/etc/cni/net.d");
    let of = |file: &str, bytes: &str| drop_in_dir(dir, OsStr::new(file), bytes.as_bytes());
    let list = r#"{"name":"n","plugins":[{"type":"a"}]}"#;
    assert_eq!(of("x.conflist", list), Some(dir.join("n")));
    assert_eq!(of("x.conflist", r#"{"name":"n"}"#), Some(dir.join("n")));
    assert_eq!(
        of("x.conflist", r#"{"name":"n","loadOnlyInlinedPlugins":true,"plugins":[{"type":"a"}]}"#),
        None
    );
    assert_eq!(of("x.conflist", "{"), None);
    assert_eq!(of("x.conf", r#"{"name":"n","type":"a"}"#), None);
}

#[test]
fn i04_a_list_of_loopback_alone_is_told() {
    let only = |types: &[&str]| {
        let entries: Vec<String> = types.iter().map(|name| format!(r#"{{"type":"{name}"}}"#)).collect();
        let list = format!(r#"{{"name":"n","plugins":[{}]}}"#, entries.join(","));
        List::load("x.conflist", list, DropIns::none()).expect("a valid list").is_loopback_only()
    };
    assert!(only(&["loopback"]) && only(&["loopback", "aether-cni"]));
    assert!(!only(&["loopback", "bridge"]) && !only(&["aether-cni"]));
}
