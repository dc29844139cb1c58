use super::*;
use crate::load::DropIn;

const OURS: &str = r#"{"name":"aether","type":"aether-cni","addDeadlineSeconds":5}"#;

fn own(text: &str) -> OwnEntry {
    OwnEntry::parse(text.as_bytes()).expect("our entry")
}

fn list(entries: &[&str]) -> Content {
    Content::Bytes(format!(r#"{{"name":"n","plugins":[{}]}}"#, entries.join(",")).into_bytes())
}

fn snapshot(content: Content) -> Snapshot {
    Snapshot {
        marker: Marker::Absent,
        want: Want::Entry(own(OURS)),
        names: Names::Listed(vec!["10-x.conflist".into(), "README".into()]),
        content,
        drop_ins: DropIns::none(),
        source: None,
    }
}

#[test]
fn c01_chained_is_exactly_one_entry_equal_as_a_json_value() {
    for same in [OURS, r#"{ "addDeadlineSeconds": 5.0, "type": "aether-cni", "name": "\u0061ether" }"#] {
        assert_eq!(state(&snapshot(list(&[r#"{"type":"a"}"#, same]))), State::Chained, "{same}");
        assert_eq!(
            state(&snapshot(list(&[r#"{"type":"a"}"#, same, r#"{"type":"b"}"#]))),
            State::Chained,
            "{same}"
        );
    }
}

#[test]
fn c01_a4_altered_doubled_or_in_a_drop_in_is_drifted() {
    let altered = r#"{"name":"aether","type":"aether-cni","addDeadlineSeconds":6}"#;
    let cased = r#"{"name":"aether","Type":"aether-cni","addDeadlineSeconds":5}"#;
    for entries in
        [&[r#"{"type":"a"}"#, altered][..], &[r#"{"type":"a"}"#, cased], &[r#"{"type":"a"}"#, OURS, OURS]]
    {
        assert!(matches!(state(&snapshot(list(entries))), State::Drifted { .. }), "{entries:?}");
    }
    let drop_in = DropIn { file_name: "x.conf".into(), content: Content::Bytes(OURS.as_bytes().to_vec()) };
    for entries in [&[r#"{"type":"a"}"#][..], &[r#"{"type":"a"}"#, OURS]] {
        let snapshot =
            Snapshot { drop_ins: DropIns::Files(vec![drop_in.clone()]), ..snapshot(list(entries)) };
        let State::Drifted { how } = state(&snapshot) else { panic!("{:?}", state(&snapshot)) };
        assert!(how.contains("n/x.conf"), "{how}");
    }
}

#[test]
fn c01_i09_ours_before_every_other_is_drifted_and_goes_behind_them() {
    let (a, b) = (r#"{"type":"a"}"#, r#"{"type":"b"}"#);
    for entries in [&[OURS, a][..], &[OURS, a, b], &[OURS, OURS, a]] {
        let State::Drifted { how } = state(&snapshot(list(entries))) else { panic!("{entries:?}") };
        assert!(how.contains("before every other"), "{how}");
        let Content::Bytes(bytes) = list(entries) else { unreachable!() };
        let read = List::load("10-x.conflist", bytes, DropIns::none()).unwrap();
        let put = crate::edit::put(&read, &own(OURS)).unwrap();
        let put = List::load("10-x.conflist", put, DropIns::none()).unwrap();
        let types: Vec<_> = put.entries().iter().map(crate::load::Entry::is_ours).collect();
        assert_eq!(types.iter().filter(|ours| **ours).count(), 1, "{entries:?}");
        assert_eq!(types.last(), Some(&true), "{entries:?}");
        assert_eq!(crate::edit::remove(&put).unwrap(), crate::edit::remove(&read).unwrap(), "{entries:?}");
    }
}

#[test]
fn c01_without_ours_it_is_stripped_and_without_a_file_there_is_no_list() {
    assert_eq!(state(&snapshot(list(&[r#"{"type":"a"}"#]))), State::Stripped);
    let broken = Content::Unread("nothing to read".to_owned());
    for names in [Names::Missing, Names::Listed(vec![]), Names::Listed(vec!["README".into()])] {
        assert_eq!(state(&Snapshot { names, ..snapshot(broken.clone()) }), State::NoList);
    }
}

#[test]
fn c01_c04_what_the_runtime_refuses_is_invalid() {
    for content in [
        Content::Bytes(vec![]),
        Content::Bytes(b"{\"name\":\"n\",".to_vec()),
        Content::Bytes(br#"{"name":"n","disableCheck":"true","plugins":[{"type":"a"}]}"#.to_vec()),
        Content::Broken("a dangling link".to_owned()),
        list(&[r#"{"type":"loopback"}"#]),
        list(&[OURS]),
        list(&[OURS, OURS]),
    ] {
        let state = state(&snapshot(content.clone()));
        assert!(matches!(state, State::Invalid { .. }), "{content:?}: {state:?}");
    }
}

#[test]
fn c01_i06_a_single_configuration_is_stripped_until_a_list_is_derived_from_it() {
    const CONF: &str = r#"{"name":"n","type":"a"}"#;
    const DERIVED: &str = "00-aether-10-x.conf.conflist";
    let content = |text: &str| Content::Bytes(text.as_bytes().to_vec());
    let names = |names: &[&str]| Names::Listed(names.iter().map(OsString::from).collect());
    let single = Snapshot { names: names(&["10-x.conf", "20-x.conflist"]), ..snapshot(content(CONF)) };
    let inspection = inspect(&single);
    assert_eq!(inspection.state, State::Stripped);
    assert_eq!(inspection.file.as_deref(), Some(OsStr::new("10-x.conf")));
    for (name, conf) in [("00-a.conf", CONF), ("10-x.conf", r#"{"name":"n","type":"multus"}"#)] {
        let state = state(&Snapshot { names: names(&[name]), ..snapshot(content(conf)) });
        assert!(matches!(state, State::Invalid { .. }), "{name}: {state:?}");
    }

    let source = List::load("10-x.conf", CONF, DropIns::none()).expect("a configuration");
    let made = derived::derive(&source, None, &own(OURS)).expect("derived");
    let chained = Snapshot {
        names: names(&[DERIVED, "10-x.conf"]),
        source: Some(content(CONF)),
        ..snapshot(Content::Bytes(made.clone()))
    };
    assert_eq!(state(&chained), State::Chained);
    let of = |list: &str, source: Option<&str>| {
        state(&Snapshot { content: content(list), source: source.map(content), ..chained.clone() })
    };
    let text = String::from_utf8(made).expect("text");
    assert!(matches!(of(&text, Some(r#"{"name":"n","type":"a","mtu":1}"#)), State::Drifted { .. }));
    assert!(matches!(of("{", Some(CONF)), State::Drifted { .. }), "it is ours to derive again");
    assert!(matches!(of(&text, Some("")), State::Invalid { .. }), "its owner is writing it");
    assert!(matches!(of(&text, None), State::Unknown { .. }));
    for others in [&[DERIVED][..], &[DERIVED, "05-y.conflist", "10-x.conf"], &[DERIVED, "20-x.conflist"]] {
        let state = state(&Snapshot { names: names(others), source: None, ..chained.clone() });
        assert!(matches!(state, State::Drifted { .. }), "{others:?}: {state:?}");
    }
}

#[test]
fn c01_what_cannot_be_told_is_unknown() {
    let chained = snapshot(list(&[r#"{"type":"a"}"#, OURS]));
    let why = || "why".to_owned();
    for snapshot in [
        Snapshot { marker: Marker::Unknown(why()), ..chained.clone() },
        Snapshot { want: Want::Nothing(why()), ..chained.clone() },
        Snapshot { names: Names::Unread(why()), ..chained.clone() },
        Snapshot { content: Content::Unread(why()), ..chained.clone() },
        Snapshot { drop_ins: DropIns::Unread(why()), ..chained.clone() },
    ] {
        let State::Unknown { why } = state(&snapshot) else { panic!("{:?}", state(&snapshot)) };
        assert!(why.contains("why"), "{why}");
    }
}

#[test]
fn c01_the_marker_comes_before_everything() {
    for content in
        [list(&[r#"{"type":"a"}"#, OURS]), Content::Bytes(vec![]), Content::Unread("why".to_owned())]
    {
        let snapshot =
            Snapshot { marker: Marker::Present, want: Want::Nothing("gone".to_owned()), ..snapshot(content) };
        assert_eq!(state(&snapshot), State::Uninstalled);
    }
}

#[test]
fn c03_a_newer_programs_wanted_state_is_met_by_any_single_entry() {
    let newer = |entries: &[&str]| state(&Snapshot { want: Want::Newer, ..snapshot(list(entries)) });
    assert_eq!(newer(&[r#"{"type":"a"}"#, r#"{"type":"aether-cni","new":true}"#]), State::Chained);
    assert_eq!(newer(&[r#"{"type":"a"}"#]), State::Stripped);
    assert!(matches!(newer(&[r#"{"type":"a"}"#, OURS, OURS]), State::Drifted { .. }));
}
