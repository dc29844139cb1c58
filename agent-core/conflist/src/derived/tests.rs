use super::*;

const OURS: &str = r#"{"name":"aether","type":"aether-cni"}"#;
const CONF: &str =
    "{\n\t\"cniVersion\":\"0.3.0\", \"name\":\"br\\u00e9\",\n\t\"type\":\"bridge\", \"mtu\": 1e3 }\n";

fn own() -> OwnEntry {
    OwnEntry::parse(OURS.as_bytes()).expect("our entry")
}

fn list(name: &str, bytes: impl AsRef<[u8]>) -> List {
    List::load(name, bytes, DropIns::none()).expect("libcni takes it")
}

fn conf(bytes: &str) -> List {
    list("10-b.conf", bytes)
}

fn derived(bytes: impl AsRef<[u8]>) -> List {
    list("00-aether-10-b.conf.conflist", bytes)
}

#[test]
fn i06_the_choice_looks_past_derived_lists() {
    let a = "00-aether-10-b.conf.conflist";
    let choice = choose([a, "10-b.conf", "20-c.conflist"]);
    assert_eq!(
        (choice.loaded.as_deref(), choice.first.as_deref()),
        (Some(a.as_ref()), Some("10-b.conf".as_ref()))
    );
    assert_eq!(choice.stale().count(), 0);
    // Its source is gone, or a foreign file comes first.
    for names in
        [&[a, "20-c.conflist"][..], &[a], &[a, "05-n.conf", "10-b.conf"], &[a, "05-n.conflist", "10-b.conf"]]
    {
        let choice = choose(names);
        assert!(choice.loads_stale() && choice.stale().count() == 1, "{names:?}");
    }
    let before = choose([a, "00-a.conflist", "10-b.conf"]);
    assert_eq!((before.stale().count(), before.loads_stale()), (1, false));
}

#[test]
fn i06_a_derived_name_sorts_before_its_source_or_there_is_none() {
    for (source, name) in [
        ("10-b.conf", Some("00-aether-10-b.conf.conflist")),
        ("10-b.json", Some("00-aether-10-b.json.conflist")),
        ("00-b.conf", Some("00-aether-00-b.conf.conflist")),
        ("00-a.conf", None),
        (".z.conf", None),
        ("10-b.conflist", None),
        ("README", None),
    ] {
        assert_eq!(name_for(source.as_ref()).as_deref(), name.map(OsStr::new), "{source}");
        if let Some(name) = name {
            assert_eq!(source_of(name.as_ref()), Some(OsStr::new(source)));
        }
    }
    assert_eq!(name_for(format!("{}.conf", "1".repeat(250)).as_ref()), None);
    for foreign in
        ["00-aether.conflist", "00-aether-10-b.conflist", "00-aether-x.conf", "00-aether-.conflist"]
    {
        assert!(!is_derived(foreign.as_ref()), "{foreign}");
    }
}

#[test]
fn i06_b3_name_version_and_plugin_are_the_sources_and_absent_stays_absent() {
    for (text, version) in [
        (CONF.to_owned(), Some("0.3.0")),
        (CONF.replace("\"cniVersion\":\"0.3.0\",", ""), None),
        (CONF.replace("0.3.0", "1.0.0"), Some("1.0.0")),
    ] {
        let made = derive(&conf(&text), None, &own()).expect("derived");
        let value: serde_json::Value = serde_json::from_slice(&made).expect("JSON");
        assert_eq!(value["name"], "br\u{e9}");
        assert_eq!(value.get("cniVersion").and_then(|value| value.as_str()), version);
        assert_eq!(value["plugins"][1]["type"], "aether-cni");
        let made_text = String::from_utf8(made).expect("text");
        assert!(made_text.contains(text.trim()), "the plugin's bytes are the source's: {made_text}");
    }
}

#[test]
fn i06_derived_again_it_is_the_same_or_follows_its_source_and_keeps_foreign_entries() {
    let first = derive(&conf(CONF), None, &own()).expect("derived");
    assert_eq!(derive(&conf(CONF), Some(&derived(&first)), &own()).expect("again"), first);
    let text = String::from_utf8(first).expect("text");
    let chained = text.replace("[\n", "[\n{\"type\":\"x\", \"n\" : 1.0},\n");
    let kept = derive(&conf(CONF), Some(&derived(&chained)), &own()).expect("kept");
    assert_eq!(String::from_utf8(kept).expect("text"), chained);
    let newer = CONF.replace("1e3", "1400");
    let followed = derive(&conf(&newer), Some(&derived(&chained)), &own()).expect("followed");
    let list = derived(&followed);
    let types: Vec<_> = list.entries().iter().map(|entry| entry.plugin_type.as_str()).collect();
    assert_eq!(types, ["bridge", "x", "aether-cni"]);
    let followed = String::from_utf8(followed).expect("text");
    assert!(followed.contains("1400") && followed.contains("{\"type\":\"x\", \"n\" : 1.0}"), "{followed}");
    assert!(is_current(&list, &conf(&newer)) && !is_current(&list, &conf(CONF)));
}

#[test]
fn i06_a_stripped_derived_list_gets_our_entry_again() {
    let first = derive(&conf(CONF), None, &own()).expect("derived");
    let stripped = edit::remove(&derived(&first)).expect("removed");
    assert_eq!(derive(&conf(CONF), Some(&derived(&stripped)), &own()).expect("again"), first);
}

#[test]
fn i06_i13_what_cannot_be_derived_says_why() {
    let multus = derive(&conf(r#"{"name":"m","type":"multus-shim"}"#), None, &own());
    assert!(matches!(multus, Err(DeriveError::Delegating { .. })), "{multus:?}");
    let loopback = derive(&conf(r#"{"name":"l","type":"loopback"}"#), None, &own());
    assert!(matches!(loopback, Err(DeriveError::Edit(EditError::LoopbackOnly { .. }))), "{loopback:?}");
    let early = list("00-a.conf", r#"{"name":"m","type":"bridge"}"#);
    let text = derive(&early, None, &own()).expect_err("no name").to_string();
    assert!(text.contains("00-aether-00-a.conf.conflist does not sort before it"), "{text}");
}

/// Found by `cargo xtask fuzz`: it counted as stripped, and was put right for ever.
#[test]
fn i06_i07_from_a_configuration_of_our_own_plugin_nothing_is_derived() {
    let source = conf(OURS);
    assert!(matches!(can_derive(&source), Err(DeriveError::Edit(EditError::OnlyOurs { .. }))));
    assert!(matches!(derive(&source, None, &own()), Err(DeriveError::Edit(EditError::OnlyOurs { .. }))));
    let state = crate::chain::state(&crate::chain::Snapshot {
        marker: crate::chain::Marker::Absent,
        want: crate::chain::Want::Entry(own()),
        names: crate::chain::Names::Listed(vec!["10-b.conf".into()]),
        content: load::Content::Bytes(OURS.into()),
        drop_ins: DropIns::none(),
        source: None,
    });
    assert!(matches!(state, aether_domain::chain::State::Invalid { .. }), "{state:?}");
}
