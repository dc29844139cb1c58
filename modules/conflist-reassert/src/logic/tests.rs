use super::*;
use crate::fight::FREE;

const LIST: &str = "{\"name\":\"cbr0\",\"plugins\":[{\"type\":\"flannel\"},{\"type\":\"portmap\"}]}\n";
const WANTED: &str = r#"{"name":"aether","type":"aether-cni"}"#;

fn seen(state: &str, name: &str, bytes: &str) -> Seen {
    Seen {
        state: state.into(),
        file: Some(File {
            name: name.into(),
            digest: "d".into(),
            bytes: bytes.into(),
            uid: 0,
            modified: 1_700_000_000_000,
        }),
        wanted: Some(WANTED.into()),
        ..Seen::default()
    }
}

#[test]
fn c02_a_strip_is_repaired_byte_by_byte() {
    let (step, declared) = Reassert::default().look(&seen("stripped", "10-flannel.conflist", LIST));
    let Step::Replace { bytes } = step else { panic!("{step:?}") };
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.starts_with("{\"name\":\"cbr0\",\"plugins\":[{\"type\":\"flannel\"},{\"type\":\"portmap\"}"),
        "{text}"
    );
    assert!(text.contains("aether-cni") && declared.is_none());
}

#[test]
fn c03_c04_what_is_not_ours_to_repair_is_left() {
    for state in ["chained", "no-list", "invalid", "uninstalled", "unknown", "something-new"] {
        let (step, _) = Reassert::default().look(&seen(state, "10-flannel.conflist", LIST));
        assert_eq!(step, Step::Leave, "{state}");
    }
    let (step, _) = Reassert::default().look(&seen("stripped", "10-flannel.conflist", "{\"name\":"));
    assert!(matches!(step, Step::Cannot(_)));
    let nothing = Seen { wanted: None, ..seen("stripped", "10-flannel.conflist", LIST) };
    assert!(matches!(Reassert::default().look(&nothing).0, Step::Cannot(_)));
}

#[test]
fn i06_a_single_plugin_is_derived_from_and_never_edited() {
    let (step, _) = Reassert::default().look(&seen("stripped", "10-bridge.conf", "{\"type\":\"bridge\"}"));
    assert_eq!(step, Step::Derive);
}

#[test]
fn c06_a_fight_is_declared_once_and_names_file_owner_time_and_plugins() {
    let mut reassert = Reassert::default();
    let (mut now, mut messages, mut replaced) = (0, Vec::new(), 0);
    for _ in 0..FREE * 4 {
        let moment = Moment { monotonic: now, wall: 1_700_000_000_000 };
        let look = Seen { now: moment, ..seen("stripped", "10-flannel.conflist", LIST) };
        let (step, declared) = reassert.look(&look);
        messages.extend(declared);
        match step {
            Step::Replace { bytes } => {
                reassert.repaired(moment, moment, "10-flannel.conflist", &bytes);
                replaced += 1;
                now += 20;
            }
            Step::Wait(wait) => now += wait,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(messages.len(), 1);
    let message = &messages[0].message;
    for words in [
        "10-flannel.conflist",
        "uid 0",
        "1700000000000",
        "flannel, portmap, aether-cni; after theirs: flannel, portmap.",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert!(replaced > FREE);
}
