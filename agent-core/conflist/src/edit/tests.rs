use proptest::prelude::*;

use super::*;

const OURS: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock","ignoredNamespaces":["a","b"],"capabilities":{"portMappings":true}}"#;

fn wanted() -> OwnEntry {
    OwnEntry::parse(OURS.as_bytes()).expect("our entry")
}

fn load(bytes: impl AsRef<[u8]>) -> List {
    List::load("10-x.conflist", bytes, DropIns::none()).expect("a valid list")
}

fn put_text(text: &str) -> String {
    String::from_utf8(put(&load(text), &wanted()).expect("it is put in")).expect("UTF-8")
}

/// Puts and removes, and gives what put made.
fn there_and_back(text: &str) -> String {
    let edited = put_text(text);
    assert_eq!(put_text(&edited), edited, "putting twice changes nothing");
    let back = remove(&load(&edited)).expect("it is taken out");
    assert_eq!(String::from_utf8_lossy(&back), text);
    edited
}

#[test]
fn i02_an_entry_is_laid_out_like_its_neighbours() {
    let lines = "{\n  \"name\": \"n\",\n  \"plugins\": [\n    {\n      \"type\": \"a\",\n      \"x\": {\n        \"y\": 1\n      }\n    }\n  ]\n}\n";
    let expected = "    },\n    {\n      \"name\": \"aether\",\n      \"type\": \"aether-cni\",\n      \"agentSocket\": \"/run/aether/cni.sock\",\n      \"ignoredNamespaces\": [\"a\", \"b\"],\n      \"capabilities\": {\n        \"portMappings\": true\n      }\n    }\n  ]\n}\n";
    let edited = there_and_back(lines);
    assert!(edited.ends_with(expected), "{edited}");
    let windows = there_and_back(&lines.replace('\n', "\r\n"));
    assert!(windows.ends_with(&expected.replace('\n', "\r\n")), "{windows}");
    let tabs = there_and_back(&lines.replace("  ", "\t"));
    assert!(tabs.ends_with(&expected.replace("  ", "\t")), "{tabs}");
}

#[test]
fn i02_an_entry_on_one_line_stays_on_one() {
    let compact = there_and_back(r#"{"name":"n","plugins":[{"type":"a","x":1}]}"#);
    assert_eq!(compact, format!(r#"{{"name":"n","plugins":[{{"type":"a","x":1}},{OURS}]}}"#));
    let spaced = there_and_back(r#"{"name": "n", "plugins": [{"type": "a", "x": 1}]}"#);
    assert!(spaced.contains(r#""x": 1}, {"name": "aether", "type": "aether-cni", "#), "{spaced}");
    let airy = there_and_back(r#"{ "name" : "n" , "plugins" : [ { "type" : "a" , "x" : 1 } ] }"#);
    assert!(airy.contains(r#""x" : 1 } , { "name" : "aether" , "type" : "aether-cni" , "#), "{airy}");
    assert!(airy.ends_with(r#"{ "portMappings" : true } } ] }"#), "{airy}");
    let own_lines =
        there_and_back("{\"name\":\"n\",\"plugins\":[\n  {\"type\":\"a\"},\n  {\"type\":\"b\"}\n]}");
    assert!(own_lines.contains("{\"type\":\"b\"},\n  {\"name\":\"aether\","), "{own_lines}");
    let inner = there_and_back(
        "{\"name\":\"n\",\"plugins\":[\n  {\n    \"type\": \"a\",\n    \"c\": {\"x\": true}\n  }\n]}",
    );
    assert!(inner.contains("    \"capabilities\": {\"portMappings\": true}\n  }\n]}"), "{inner}");
}

#[test]
fn i02_c7_odd_lists_come_back_byte_by_byte() {
    for text in [
        "\n\t{\"name\":\"n\",\"plugins\":[\n\t{\"type\":\"a\"}\n\t]}",
        "{\"plugins\":[{\"type\":\"a\"}   ,\n\n\n {\"type\":\"b\"}   ]   ,\"name\":\"n\"}\r\n\r\n",
        "{\"name\":\"n\",\"plugins\":[{\"type\":\"x\"}],\"plugins\":[ {\"type\":\"a\"} ],\"z\":[9007199254740993,1.0,1e3]}",
        "{\"name\":\"n\",\"plugins\":[{\"type\":\"a\"\n}\n,{\n\"type\":\"b\"}]}",
        "{\"name\":\"\\u003c\u{e9}\\ud83d\",\"plugins\":[{\"z\":1,\"a\":2,\"TYPE\":\"a\"}]}",
        "{\"name\":\"n\",\"plugins\":[{\"type\":\"a\",\"x\":\"]}{[,\\\"\"}]}",
        "{\"name\":\"n\",\"plugins\":[\r{\r\"type\":\"a\"\r}\r]\r}",
    ] {
        there_and_back(text);
    }
    let invalid = b"{\"name\":\"n\xFF\",\"plugins\":[{\"type\":\"a\xC3\"}]}";
    let edited = put(&load(invalid), &wanted()).expect("it is put in");
    assert_eq!(remove(&load(&edited)).expect("it is taken out"), invalid);
}

#[test]
fn i09_an_older_entry_is_replaced_where_it_stands() {
    let edited =
        put_text(r#"{"name":"n","plugins":[{"type":"a"},{"type":"aether-cni","old":1},{"type":"b"}]}"#);
    assert_eq!(edited, format!(r#"{{"name":"n","plugins":[{{"type":"a"}},{OURS},{{"type":"b"}}]}}"#));
    let back = remove(&load(&edited)).expect("it is taken out");
    assert_eq!(back, br#"{"name":"n","plugins":[{"type":"a"},{"type":"b"}]}"#);
}

#[test]
fn i09_the_same_value_in_other_bytes_is_left_as_it_stands() {
    let other = r#"{ "capabilities": {"portMappings": false, "portMappings": true},"type":"aether\u002dcni", "name":"aether","agentSocket":"\/run/aether/cni.sock","ignoredNamespaces":["a","b"]}"#;
    let list = format!(r#"{{"name":"n","plugins":[{{"type":"a"}},{other}]}}"#);
    assert_eq!(put_text(&list), list);
}

#[test]
fn m03_i09_ours_keeps_its_place_or_goes_last() {
    let list = |kinds: &str| {
        let entry = |kind| if kind == 'o' { r#"{"type":"aether-cni"}"# } else { r#"{"type":"a"}"# };
        let entries: Vec<_> = kinds.chars().map(entry).collect();
        load(format!(r#"{{"name":"n","plugins":[{}]}}"#, entries.join(",")))
    };
    for (old, new, kept) in [
        ("aa", "aao", true),
        ("aa", "oaa", false),
        ("aa", "aoa", false),
        ("aa", "aa", false),
        ("aao", "aao", true),
        ("aao", "oaa", false),
        ("oaa", "oaa", false),
        ("oaa", "aao", true),
        ("oaa", "aoa", false),
        ("oaoa", "aoa", true),
        ("oaoa", "oaa", false),
        ("ooaa", "oaa", false),
        ("ooaa", "aao", true),
    ] {
        assert_eq!(keeps_place(&list(old), &list(new)), kept, "{old} to {new}");
        if let Ok(put) = put(&list(old), &wanted()) {
            assert!(keeps_place(&list(old), &load(put)), "the editor itself, from {old}");
        }
    }
}

#[test]
fn i09_doubles_become_one() {
    let o = r#"{"type":"aether-cni","old":1}"#;
    for (entries, expected) in [
        (format!(r#"{{"type":"a"}},{o},{o}"#), format!(r#"{{"type":"a"}},{OURS}"#)),
        (format!(r#"{o},{{"type":"a"}},{o}"#), format!(r#"{{"type":"a"}},{OURS}"#)),
        (format!(r#"{o},{o},{{"type":"a"}}"#), format!(r#"{{"type":"a"}},{OURS}"#)),
        (format!(r#"{o}, {OURS}, {{"type":"a"}},{o} ,{OURS}"#), format!(r#"{{"type":"a"}} ,{OURS}"#)),
    ] {
        let list = format!(r#"{{"name":"n","plugins":[{entries}]}}"#);
        let edited = put_text(&list);
        assert_eq!(edited, format!(r#"{{"name":"n","plugins":[{expected}]}}"#), "from {list}");
        assert_eq!(remove(&load(&edited)), remove(&load(&list)));
    }
}

#[test]
fn i09_a_list_full_of_doubles_takes_no_time() {
    let doubles = r#"{"type":"aether-cni"},"#.repeat(100_000);
    let list = load(format!(r#"{{"name":"n","plugins":[{doubles}{{"type":"a"}}]}}"#));
    let started = std::time::Instant::now();
    let edited = put(&list, &wanted()).expect("one stays");
    assert_eq!(edited, format!(r#"{{"name":"n","plugins":[{{"type":"a"}},{OURS}]}}"#).as_bytes());
    // Some ten milliseconds; quadratic work would take minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn i07_a11_a_list_with_nothing_but_ours_is_left_alone() {
    for entries in [OURS.to_owned(), format!("{OURS},{OURS}")] {
        let list = load(format!(r#"{{"name":"n","plugins":[{entries}]}}"#));
        let only = EditError::OnlyOurs { file: "10-x.conflist".to_owned() };
        assert_eq!(put(&list, &wanted()), Err(only.clone()));
        assert_eq!(remove(&list), Err(only));
    }
}

#[test]
fn i04_i06_what_cannot_be_chained_to_is_refused() {
    let single = List::load("x.conf", br#"{"type":"a"}"#, DropIns::none()).expect("valid");
    assert!(matches!(put(&single, &wanted()), Err(EditError::Single { .. })));
    assert_eq!(remove(&single).as_deref(), Ok(single.bytes()));
    let loopback = load(r#"{"name":"n","plugins":[{"type":"loopback"}]}"#);
    assert!(matches!(put(&loopback, &wanted()), Err(EditError::LoopbackOnly { .. })));
    let drop_in = crate::load::DropIn {
        file_name: "x.conf".into(),
        content: crate::load::Content::Bytes(OURS.as_bytes().to_vec()),
    };
    let list = br#"{"name":"n","plugins":[{"type":"a"}]}"#;
    let list = List::load("x.conflist", list, DropIns::Files(vec![drop_in])).expect("valid");
    let error = put(&list, &wanted()).expect_err("ours in a drop-in");
    assert!(error.to_string().starts_with("n/x.conf, a drop-in of x.conflist"), "{error}");
}

#[test]
fn i07_no_list_is_made_that_libcni_would_refuse() {
    let deep = format!(r#"{{"type":"aether-cni","x":{}{}}}"#, "[".repeat(9_999), "]".repeat(9_999));
    let deep = OwnEntry::parse(deep.as_bytes()).expect("deep, but JSON");
    let error =
        put(&load(r#"{"name":"n","plugins":[{"type":"a"}]}"#), &deep).expect_err("too deep in a list");
    assert!(matches!(error, EditError::Unsound { .. }), "{error}");
    let by_one = br#"{"name":"n","disableCheck":"true","plugins":[{"type":"a"},{"type":"aether-cni"}]}"#;
    let by_one = List::load_by(crate::libcni::Version::V1_3_1, "x.conflist", by_one, DropIns::none())
        .expect("1.3 takes it");
    assert!(matches!(put(&by_one, &wanted()), Err(EditError::Unsound { .. })));
    let removed = remove(&by_one).expect("ours goes all the same");
    assert_eq!(removed, br#"{"name":"n","disableCheck":"true","plugins":[{"type":"a"}]}"#);
}

/// White space as it may stand between two tokens.
fn space() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[ \t\r\n]{0,4}", Just("\n    ".to_owned()), Just("\r\n\t\t".to_owned())]
}

fn entry() -> impl Strategy<Value = String> {
    let foreign =
        (space(), space(), "[a-z<&\u{e9}]{1,8}", space(), space()).prop_map(|(a, b, name, c, d)| {
            format!("{{{a}\"type\"{b}:{c}\"{name}\"{d},{a}\"zz\":{b}[1.0,{d}1e3]{c}}}")
        });
    let ours = (space(), "[a-z]{0,3}")
        .prop_map(|(a, x)| format!("{{{a}\"type\":{a}\"aether-cni\"{a},\"x\":\"{x}\"}}"));
    prop_oneof![4 => foreign, 1 => ours]
}

prop_compose! {
    /// A list with any white space, entries of ours now and then among them.
    fn list()(
        entries in proptest::collection::vec((space(), entry(), space()), 1..6),
        outer in proptest::collection::vec(space(), 4),
        behind in any::<bool>(),
    ) -> String {
        let entries: Vec<String> = entries.into_iter().map(|(a, entry, b)| format!("{a}{entry}{b}")).collect();
        let plugins = format!("\"plugins\":{}[{}]", outer[0], entries.join(","));
        let name = format!("{}\"name\":\"n\"{}", outer[1], outer[2]);
        let (first, second) = if behind { (name, plugins) } else { (plugins, name) };
        format!("{}{{{first},{second}}}{}", outer[3], outer[1])
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Named invariants: others' bytes stay, put is idempotent, put then remove is remove, exactly one of ours.
    #[test]
    fn i02_i09_edits_keep_everything_but_our_object(text in list()) {
        let original = load(&text);
        match put(&original, &wanted()) {
            Err(error) => {
                prop_assert!(matches!(error, EditError::OnlyOurs { .. }), "{error}");
                prop_assert_eq!(original.ours().count(), original.entries().len());
            }
            Ok(edited) => {
                let after = load(&edited);
                prop_assert_eq!(after.ours().count(), 1);
                let ours = after.ours().next().expect("one");
                prop_assert!(wanted().equals(ours));
                prop_assert_eq!(&put(&after, &wanted()).expect("again"), &edited);
                let removed = remove(&after).expect("taken out");
                prop_assert_eq!(&removed, &remove(&original).expect("taken out"));
                if original.ours().next().is_none() {
                    prop_assert_eq!(&removed, text.as_bytes());
                    prop_assert!(after.entries().last().is_some_and(crate::load::Entry::is_ours));
                }
                let foreign = |list: &List| -> Vec<Vec<u8>> {
                    list.entries().iter().filter(|entry| !entry.is_ours()).map(|entry| list.text(entry).to_vec()).collect()
                };
                prop_assert_eq!(foreign(&original), foreign(&after));
            }
        }
    }

    #[test]
    fn i07_any_bytes_are_loaded_and_edited_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for name in ["x.conflist", "x.conf"] {
            if let Ok(list) = List::load(name, &bytes, DropIns::none()) {
                let _ = put(&list, &wanted());
                let _ = remove(&list);
            }
        }
    }

    /// A valid list with a few bytes of it changed: what is still taken comes back byte by byte.
    #[test]
    fn i02_damaged_lists_are_refused_or_come_back(text in list(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(list) = List::load("x.conflist", &bytes, DropIns::none())
            && list.ours().next().is_none()
            && let Ok(edited) = put(&list, &wanted())
        {
            let again = List::load("x.conflist", &edited, DropIns::none()).expect("still valid");
            prop_assert_eq!(remove(&again).expect("taken out"), bytes);
        }
    }
}
