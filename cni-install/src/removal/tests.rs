use aether_domain::format::Parsed;
use aether_domain::ids::InstallId;
use aether_domain::wanted::Wanted;

use aether_conflist::derived;

use super::*;
use crate::found::{Kept, Net};

const PLAIN: &str = r#"{"name":"cbr0","plugins":[{"type":"flannel"}]}"#;
const CHAINED: &str = r#"{"name":"cbr0","plugins":[{"type":"flannel"},{"type":"aether-cni"}]}"#;

fn places() -> Places {
    Places { conf_dir: "/d".into(), bin_dir: "/b".into(), state_dir: "/s".into(), conf_name: None }
}

fn id(text: &str) -> InstallId {
    text.parse().unwrap()
}

fn found(files: &[(&str, &str)]) -> Found {
    let candidate = |(name, bytes): &(&str, &str)| Candidate {
        file_name: name.into(),
        content: Content::Bytes(bytes.as_bytes().to_vec()),
        drop_ins: DropIns::none(),
        link: None,
    };
    let wanted = Wanted {
        format: Format::V1,
        entry: serde_json::json!({"type": "aether-cni"}),
        plugin_sha256: String::new(),
        install_id: id("m/3"),
        first_installed: 1,
    };
    Found {
        net: Net {
            names: Names::Listed(files.iter().map(|(name, _)| name.into()).collect()),
            candidates: files.iter().map(candidate).collect(),
            count: files.len(),
            choice: derived::choose(files.iter().map(|(name, _)| name)),
            existing: None,
            link: None,
        },
        plugin: Plugin::Identical,
        wanted: Some(Kept { bytes: Vec::new(), parsed: Parsed::Good(wanted) }),
        marker: None,
        now: 1000,
    }
}

fn order(called: Option<&str>, binary: Binary) -> Uninstall {
    Uninstall { id: called.map(id), binary }
}

fn marker_of(removal: &Removal) -> Marker {
    match &removal.marker {
        Write::Bytes(bytes) => serde_json::from_slice(bytes).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn i01_every_list_that_holds_ours_is_edited_and_no_other() {
    let found = found(&[("05-a.conflist", PLAIN), ("10-b.conflist", CHAINED), ("99-c.conflist", CHAINED)]);
    let removal = uninstall(&places(), &order(None, Binary::Keep), Force::No, &found);
    let paths: Vec<_> = removal.lists.iter().map(|edit| edit.path.as_path()).collect();
    assert_eq!(paths, [Path::new("/d/10-b.conflist"), Path::new("/d/99-c.conflist")]);
    assert!(removal.lists.iter().all(|edit| edit.new == PLAIN.as_bytes()));
    assert_eq!((removal.wanted, removal.binary), (Step::Do, BinaryStep::Keep));
}

#[test]
fn i01_the_marker_names_the_install_that_goes() {
    let plain = found(&[]);
    let marker = |called: Option<&str>| {
        marker_of(&uninstall(&places(), &order(called, Binary::Keep), Force::No, &plain)).install_id
    };
    assert_eq!(marker(None), Some(id("m/3")));
    assert_eq!(marker(Some("m/5")), Some(id("m/5")));
    assert_eq!(marker(Some("m/1")), Some(id("m/3")));
}

#[test]
fn i01_a_marker_that_says_it_already_is_not_written_again() {
    let mut again = found(&[]);
    let first = marker_of(&uninstall(&places(), &order(None, Binary::Keep), Force::No, &again));
    again.marker = Some(Kept { bytes: Vec::new(), parsed: Parsed::Good(first) });
    again.now = 2000;
    let second = uninstall(&places(), &order(None, Binary::Keep), Force::No, &again);
    assert_eq!(second.marker, Write::Already);
    // The wanted state is gone by then, in a run that goes on after a kill.
    again.wanted = None;
    let third = uninstall(&places(), &order(None, Binary::Keep), Force::No, &again);
    assert_eq!((third.marker, third.wanted), (Write::Already, Step::Already));
}

#[test]
fn i01_what_cannot_be_taken_away_keeps_wanted_state_and_binary() {
    let broken = format!("{CHAINED},");
    let found = found(&[("05-a.conflist", &broken), ("10-b.conflist", CHAINED), ("99-c.conf", "{")]);
    let removal = uninstall(&places(), &order(None, Binary::Remove), Force::Yes, &found);
    assert_eq!(removal.lists.len(), 1, "the others are edited all the same");
    assert!(matches!(removal.problems.as_slice(), [Problem::Invalid { .. }]), "{:?}", removal.problems);
    assert_eq!((removal.wanted, removal.binary), (Step::NotYet, BinaryStep::KeepNeeded));
}

#[test]
fn i01_e6_a_binary_of_another_install_goes_only_by_force() {
    let mut found = found(&[]);
    found.plugin = Plugin::Different;
    let step = |force| uninstall(&places(), &order(None, Binary::Remove), force, &found).binary;
    assert_eq!(step(Force::No), BinaryStep::KeepForeign);
    assert_eq!(step(Force::Yes), BinaryStep::Remove);
}
