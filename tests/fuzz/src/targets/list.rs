//! The list editor alone, at full speed: the input is a list, a single configuration, and an entry of ours.

use aether_conflist::chain::{self, Marker, Names, Snapshot, Want};
use aether_conflist::derived;
use aether_conflist::edit::{EditError, put, remove};
use aether_conflist::libcni::Version;
use aether_conflist::load::{Content, DropIns, List};
use aether_conflist::own::OwnEntry;
use aether_domain::chain::State;

/// Our entry, with everything that the installer writes.
pub(crate) const ENTRY: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock","stateDir":"/var/lib/aether","addDeadlineSeconds":5,"ignoredNamespaces":["kube-system","a"],"releaseNamespace":"aether","managed":"opt-out","capabilities":{"io.kubernetes.cri.pod-annotations":true,"portMappings":true}}"#;
pub(crate) const LIST: &str = "10-x.conflist";
const SINGLE: &str = "10-x.conf";
const FOREIGN: &[u8] = br#"{"name":"cbr0","plugins":[{"type":"flannel"}]}"#;

pub(crate) fn wanted() -> OwnEntry {
    OwnEntry::parse(ENTRY.as_bytes()).expect("our entry is one")
}

pub(crate) fn run(bytes: &[u8]) {
    as_list(bytes);
    as_single(bytes);
    as_entry(bytes);
}

fn load(name: &str, bytes: &[u8]) -> Option<List> {
    let by = |version| List::load_by(version, name, bytes, DropIns::none()).is_ok();
    let (old, new) = (by(Version::V1_1_2), by(Version::V1_3_1));
    let both = List::load(name, bytes, DropIns::none());
    // What both take may still be more than we read, never the other way round.
    assert!(both.is_err() || old && new, "taken by both, yet 1.1.2 says {old} and 1.3.1 {new}");
    both.ok()
}

fn as_list(bytes: &[u8]) {
    let state = state(LIST, bytes);
    for version in [Version::V1_1_2, Version::V1_3_1] {
        if let Ok(list) = List::load_by(version, LIST, bytes, DropIns::none()) {
            restored(&list);
        }
    }
    let Some(list) = load(LIST, bytes) else {
        assert!(!matches!(state, State::Chained | State::Stripped | State::Drifted { .. }), "{state:?}");
        return;
    };
    restored(&list);
    let Some(edited) = edited(&list, &wanted()) else { return };
    match state {
        State::Chained => assert_eq!(edited, bytes, "a chained list is changed"),
        State::Stripped => assert_eq!(list.ours().count(), 0),
        State::Drifted { .. } => assert_ne!(edited, bytes, "a drifted list is not changed"),
        other => panic!("the list takes our entry, and its state is {other:?}"),
    }
    assert_eq!(self::state(LIST, &edited), State::Chained);
}

/// Puts the entry in, and checks what must hold of that.
fn edited(list: &List, entry: &OwnEntry) -> Option<Vec<u8>> {
    let edited = match put(list, entry) {
        Ok(edited) => edited,
        Err(EditError::Unsound { file, reason }) => panic!("{file}: {reason}"),
        Err(_) => return None,
    };
    let again = load(LIST, &edited).expect("the edited list is taken");
    assert_eq!(put(&again, entry).expect("it takes the entry again"), edited, "twice is not once");
    let removed = remove(&again).expect("the entry comes out");
    if list.ours().next().is_none() {
        assert_eq!(removed, list.bytes(), "edit then remove is not the original");
        let grown = edited.len() - list.bytes().len();
        let same = list.bytes().iter().zip(&edited).take_while(|(a, b)| a == b).count();
        let behind = list.bytes().get(same..).unwrap_or_default();
        assert!(edited.get(same + grown..) == Some(behind), "more than one object was inserted");
    } else {
        assert_eq!(removed, remove(list).expect("the entries come out"), "what was ours stays");
    }
    Some(edited)
}

/// Takes our entries out, where others stay.
fn restored(list: &List) {
    match remove(list) {
        Ok(without) if list.ours().next().is_none() => assert_eq!(without, list.bytes()),
        Ok(_) | Err(EditError::OnlyOurs { .. } | EditError::Single { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn as_single(bytes: &[u8]) {
    let state = state(SINGLE, bytes);
    let Some(source) = load(SINGLE, bytes) else { return };
    let derived = match derived::derive(&source, None, &wanted()) {
        Ok(derived) => derived,
        Err(error) => {
            assert_ne!(state, State::Stripped, "nothing can be derived from it: {error}");
            return;
        }
    };
    assert_eq!(state, State::Stripped);
    let list = load(LIST, &derived).expect("the derived list is taken");
    assert!(derived::is_current(&list, &source), "the derived list is not what its source says");
    let again = derived::derive(&source, Some(&list), &wanted()).expect("it is derived again");
    assert_eq!(again, derived, "twice is not once");
}

fn as_entry(bytes: &[u8]) {
    let Ok(entry) = OwnEntry::parse(bytes) else { return };
    let list = load(LIST, FOREIGN).expect("a list");
    // An entry may be one that no list can hold: nested to the bound, say.
    let Ok(bytes) = put(&list, &entry) else { return };
    let again = load(LIST, &bytes).expect("the edited list is taken");
    assert!(again.ours().all(|ours| entry.equals(ours)), "it does not mean what was put in");
    edited(&list, &entry);
}

fn state(name: &str, bytes: &[u8]) -> State {
    chain::state(&Snapshot {
        marker: Marker::Absent,
        want: Want::Entry(wanted()),
        names: Names::Listed(vec![name.into()]),
        content: Content::Bytes(bytes.to_vec()),
        drop_ins: DropIns::none(),
        source: None,
    })
}
