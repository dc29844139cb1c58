use std::path::Path;

use aether_conflist::load::DropIns;
use aether_domain::ids::InstallId;
use aether_domain::wanted::Marker;
use proptest::prelude::*;

use super::*;
use crate::found::{Candidate, Kept, Net};

const LIST: &str = r#"{"name":"cbr0","plugins":[{"type":"flannel"}]}"#;
const SHA: &str = "00ff";

fn order(id: &str) -> Install {
    let value = serde_json::json!({"name": "aether", "type": "aether-cni"});
    Install {
        id: id.parse().unwrap(),
        entry: crate::entry::Entry { text: value.to_string(), value },
        plugin_source: "/image/aether-cni".into(),
    }
}

fn places() -> Places {
    Places { conf_dir: "/d".into(), bin_dir: "/b".into(), state_dir: "/s".into(), conf_name: None }
}

fn net(files: &[(&str, &str)]) -> Net {
    let candidate = |(name, bytes): &(&str, &str)| Candidate {
        file_name: name.into(),
        content: Content::Bytes(bytes.as_bytes().to_vec()),
        drop_ins: DropIns::none(),
        link: None,
    };
    Net {
        names: Names::Listed(files.iter().map(|(name, _)| name.into()).collect()),
        candidates: files.iter().map(candidate).collect(),
        count: files.len(),
        choice: derived::choose(files.iter().map(|(name, _)| name)),
        existing: None,
        link: None,
    }
}

fn found(files: &[(&str, &str)]) -> Found {
    Found { net: net(files), plugin: Plugin::Missing, wanted: None, marker: None, now: 1000 }
}

fn marker(id: Option<&str>) -> Kept<Marker> {
    let install_id: Option<InstallId> = id.map(|id| id.parse().unwrap());
    Kept {
        bytes: Vec::new(),
        parsed: Parsed::Good(Marker { format: Format::V1, install_id, uninstalled_at: 1 }),
    }
}

fn plan(id: &str, force: Force, found: &Found) -> Result<Plan, Refusal> {
    let order = order(id);
    let own = OwnEntry::parse(order.entry.text.as_bytes()).unwrap();
    install(&places(), &order, &own, SHA, force, found)
}

/// What the node looks like when the plan is done.
fn done(plan: &Plan, before: &Found) -> Found {
    let mut after = before.clone();
    after.plugin = if plan.binary == Step::NotYet { after.plugin } else { Plugin::Identical };
    if let Write::Bytes(bytes) = &plan.wanted {
        let parsed = aether_domain::format::parse(bytes, aether_domain::wanted::READER);
        after.wanted = Some(Kept { bytes: bytes.clone(), parsed });
    }
    if plan.marker == Step::Do {
        after.marker = None;
    }
    if let (ListStep::Edit { new, .. }, Some(first)) = (&plan.list, after.net.candidates.first_mut()) {
        first.content = Content::Bytes(new.clone());
    }
    after
}

#[test]
fn i01_a_plan_that_is_done_leaves_nothing_to_do() {
    let mut before = found(&[("10-f.conflist", LIST)]);
    before.marker = Some(marker(Some("m/1")));
    let first = plan("m/2", Force::No, &before).unwrap();
    assert_eq!((first.binary, first.marker), (Step::Do, Step::Do));
    let mut after = done(&first, &before);
    // Later, too: the time of the first install does not move.
    after.now = 2000;
    let second = plan("m/2", Force::No, &after).unwrap();
    assert_eq!((second.binary, second.wanted, second.marker), (Step::Already, Write::Already, Step::Already));
    assert!(matches!(second.list, ListStep::Already(_)));
}

#[test]
fn i05_without_a_list_everything_before_it_is_done() {
    let plan = plan("m/1", Force::No, &found(&[])).unwrap();
    assert_eq!(plan.binary, Step::Do);
    assert!(matches!(plan.wanted, Write::Bytes(_)));
    assert_eq!(plan.list, ListStep::Wait(Missing::NoList("/d".into())));
}

#[test]
fn i05_without_a_directory_nothing_is_begun() {
    let mut no_lists = found(&[]);
    no_lists.net.names = Names::Missing;
    let mut no_plugins = found(&[("10-f.conflist", LIST)]);
    no_plugins.plugin = Plugin::NoDirectory;
    for (found, missing) in
        [(no_lists, Missing::ConfDir("/d".into())), (no_plugins, Missing::BinDir("/b".into()))]
    {
        let plan = plan("m/1", Force::No, &found).unwrap();
        assert_eq!((plan.binary, plan.wanted, plan.marker), (Step::NotYet, Write::NotYet, Step::NotYet));
        assert_eq!(plan.list, ListStep::Wait(missing));
    }
}

#[test]
fn i12_what_cannot_be_read_is_an_error_and_no_reason_to_wait() {
    let mut unlisted = found(&[]);
    unlisted.net.names = Names::Unread("no".to_owned());
    let mut unread = found(&[("10-f.conflist", LIST)]);
    unread.net.candidates.first_mut().unwrap().content = Content::Unread("no".to_owned());
    let mut drop_ins = found(&[("10-f.conflist", LIST)]);
    drop_ins.net.candidates.first_mut().unwrap().drop_ins = DropIns::Unread("no".to_owned());
    for found in [unlisted, unread, drop_ins] {
        let refusal = plan("m/1", Force::Yes, &found).unwrap_err();
        assert!(matches!(refusal, Refusal::Unreadable { .. }), "{refusal:?}");
        assert_eq!(refusal.exit(), crate::exit::Exit::Failed);
    }
}

#[test]
fn i02_a_link_is_followed_unless_it_leads_out_of_what_is_mounted() {
    let mut node = found(&[("10-f.conflist", LIST)]);
    node.net.candidates.first_mut().unwrap().link = Some("../list".into());
    assert!(matches!(plan("m/1", Force::No, &node).unwrap().list, ListStep::Edit { .. }));
    node.net.link =
        Some(LinkError::Outside { path: "/d/10-f.conflist".into(), target: "/elsewhere/list".into() });
    let refusal = plan("m/1", Force::Yes, &node).unwrap_err();
    assert!(
        matches!(refusal, Refusal::Link(_)) && refusal.exit() == crate::exit::Exit::Refused,
        "{refusal:?}"
    );
}

#[test]
fn i06_a_single_configuration_is_derived_from_and_derived_lists_of_others_go() {
    let (conf, list, stale) = ("10-b.conf", "00-aether-10-b.conf.conflist", "00-aether-20-c.conf.conflist");
    let mut node = found(&[(conf, r#"{"name":"b","type":"bridge"}"#)]);
    let names = [conf, stale];
    node.net.choice = derived::choose(names);
    let first = plan("m/1", Force::No, &node).unwrap();
    let ListStep::Derive { derivation, .. } = &first.list else { panic!("{first:?}") };
    assert_eq!((derivation.name.to_str(), &derivation.old), (Some(list), &None));
    assert_eq!(first.stale, [stale]);
    let mut after = done(&first, &node);
    after.net.choice = derived::choose([conf, list]);
    let mut existing = node.net.candidates[0].clone();
    existing.content = Content::Bytes(derivation.new.clone());
    after.net.existing = Some(existing);
    let second = plan("m/1", Force::No, &after).unwrap();
    assert!(matches!(&second.list, ListStep::Already(choice) if choice.derived.is_some()), "{second:?}");
    assert!(second.stale.is_empty());
}

#[test]
fn i06_a_derived_list_goes_with_its_source_but_stays_while_the_next_file_is_not_ready() {
    let stale = "00-aether-20-c.conf.conflist";
    let mut gone = found(&[]);
    gone.net.choice = derived::choose([stale]);
    assert_eq!(plan("m/1", Force::No, &gone).unwrap().stale, [stale]);
    let mut torn = found(&[("05-x.conflist", "{")]);
    torn.net.choice = derived::choose([stale, "05-x.conflist"]);
    assert!(plan("m/1", Force::No, &torn).unwrap().stale.is_empty());
}

proptest! {
    /// A marker refuses exactly the install that it names and those before it.
    #[test]
    fn i01_the_marker_refuses_by_release_and_revision(
        release in "[ab]", revision in 0_u64..20, removed_release in "[ab]", removed in 0_u64..20,
    ) {
        let mut found = found(&[("10-f.conflist", LIST)]);
        found.marker = Some(marker(Some(&format!("{removed_release}/{removed}"))));
        let id = format!("{release}/{revision}");
        let refused = matches!(plan(&id, Force::No, &found), Err(Refusal::Uninstalled { .. }));
        prop_assert_eq!(refused, release == removed_release && revision <= removed);
        prop_assert!(plan(&id, Force::Yes, &found).is_ok());
    }

    /// Whatever the files hold, only the first one is ever edited, and never to a list of ours alone.
    #[test]
    fn i04_i07_only_the_first_file_is_edited(first in "[ -~]{0,40}", list in any::<bool>()) {
        let content = if list { LIST.to_owned() } else { first };
        let found = found(&[("05-a.conflist", &content), ("10-f.conflist", LIST)]);
        match plan("m/1", Force::No, &found).map(|plan| plan.list) {
            Ok(ListStep::Edit { choice, new, .. }) => {
                prop_assert_eq!(choice.path, Path::new("/d/05-a.conflist"));
                let value: serde_json::Value = serde_json::from_slice(&new).unwrap();
                prop_assert!(value["plugins"].as_array().unwrap().len() > 1);
            }
            Ok(ListStep::Wait(Missing::Invalid { .. })) => prop_assert!(!list),
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
