use aether_conflist::chain::{self, Marker, Names, Snapshot};
use aether_conflist::load::{Content, DropIns};

use aether_conflist::want::WantedFile;

use super::*;

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni"}"#;
const OTHER: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/x"}"#;

fn file(entry: &str) -> WantedFile {
    WantedFile::Bytes(
        format!(
            r#"{{"format":1,"oldestReader":1,"entry":{entry},"pluginSha256":"00","installId":"r/1","firstInstalled":1}}"#
        )
        .into_bytes(),
    )
}

fn look(memory: &mut Memory, wanted: &WantedFile, marker: Marker, in_list: Option<&str>) -> State {
    let plugins: Vec<&str> = [r#"{"type":"flannel"}"#].into_iter().chain(in_list).collect();
    let list = format!(r#"{{"name":"cbr0","cniVersion":"0.3.1","plugins":[{}]}}"#, plugins.join(","));
    let resolved = memory.resolve(wanted);
    let inspection = chain::inspect(&Snapshot {
        marker,
        want: resolved.want.clone(),
        names: Names::Listed(vec!["10-flannel.conflist".into()]),
        content: Content::Bytes(list.into_bytes()),
        drop_ins: DropIns::none(),
        source: None,
    });
    memory.learn(&resolved, &inspection, 1);
    inspection.state
}

#[test]
fn c01_the_entry_last_observed_healthy_stands_in_for_a_lost_or_damaged_wanted_state() {
    for lost in [WantedFile::Missing, WantedFile::Bytes(b"{".to_vec()), WantedFile::Unread("EIO".to_owned())]
    {
        let mut memory = Memory::default();
        let without = look(&mut memory, &lost, Marker::Absent, Some(ENTRY));
        assert!(matches!(without, State::Unknown { .. }), "nothing is known yet: {without:?}");
        assert_eq!(look(&mut memory, &file(ENTRY), Marker::Absent, Some(ENTRY)), State::Chained);
        assert_eq!(look(&mut memory, &lost, Marker::Absent, Some(ENTRY)), State::Chained);
        assert_eq!(look(&mut memory, &lost, Marker::Absent, None), State::Stripped);
        let other = look(&mut memory, &lost, Marker::Absent, Some(OTHER));
        assert!(matches!(other, State::Drifted { .. }), "{other:?}");
        assert_eq!(memory.resolve(&lost).install_id, Some("r/1".parse().unwrap()));
    }
}

#[test]
fn c01_an_entry_that_is_not_healthy_is_not_remembered() {
    let mut memory = Memory::default();
    let drifted = look(&mut memory, &file(ENTRY), Marker::Absent, Some(OTHER));
    assert!(matches!(drifted, State::Drifted { .. }), "{drifted:?}");
    assert!(matches!(memory.resolve(&WantedFile::Missing).want, Want::Nothing(_)));
}

#[test]
fn c01_an_uninstall_ends_the_memory() {
    let mut memory = Memory::default();
    assert_eq!(look(&mut memory, &file(ENTRY), Marker::Absent, Some(ENTRY)), State::Chained);
    assert_eq!(look(&mut memory, &file(ENTRY), Marker::Present, Some(ENTRY)), State::Uninstalled);
    assert!(matches!(memory.resolve(&WantedFile::Missing).want, Want::Nothing(_)));
}

#[test]
fn c01_under_a_newer_wanted_state_any_single_entry_of_ours_is_right_and_remembered() {
    let newer = WantedFile::Bytes(br#"{"format":9,"oldestReader":9}"#.to_vec());
    let mut memory = Memory::default();
    assert_eq!(look(&mut memory, &newer, Marker::Absent, Some(OTHER)), State::Chained);
    assert_eq!(look(&mut memory, &newer, Marker::Absent, None), State::Stripped);
    let Want::Entry(last) = memory.resolve(&WantedFile::Missing).want else { panic!("it was seen") };
    // As a JSON value: the order of its keys is not kept.
    let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(value(last.text()), value(OTHER.as_bytes()));
}
