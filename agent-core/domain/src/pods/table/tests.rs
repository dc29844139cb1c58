use super::*;
use crate::format::Format;
use crate::limits::DEL_MEMORY;
use crate::record::{Netns, Pod};
use proptest::prelude::*;

const BOOT: &str = "b1";

fn boot() -> BootId {
    BootId::new(BOOT)
}

fn at(nanos: u64) -> Stamp {
    Stamp::new(boot(), nanos)
}

fn key(container: &str) -> Key {
    Key::new(container.parse().unwrap(), "eth0".parse().unwrap())
}

fn network(name: &str) -> NetworkName {
    name.parse().unwrap()
}

/// A record of `container` for `pod`; no pod's name stands for a caller that is no kubelet.
fn record(container: &str, pod: &str, started: u64) -> Record {
    Record {
        format: Format::V1,
        key: key(container),
        network: network("net"),
        started: at(started),
        request_id: format!("{container}-{started}").parse().unwrap(),
        managed: Managed::Yes,
        netns: Netns::default(),
        pod: Pod { namespace: "ns".to_owned(), name: pod.to_owned(), ..Pod::default() },
        policy_labels: std::collections::BTreeMap::new(),
    }
}

/// Does what the store does with an ADD: write, tell the table, look again, remove what it replaced.
fn add(table: &mut Table, record: &Record, now: u64) -> Result<(), Refusal> {
    match table.add(record, now) {
        Add::Refuse(refusal) => return Err(refusal),
        Add::Standing => return Ok(()),
        Add::Write { .. } => drop(table.recorded(record.clone())),
    }
    assert_eq!(table.superseded(record), None, "decided and recorded in one breath");
    for old in table.replaced_by(record) {
        if let Removal::Remove(_) = table.replace(&old, record) {
            table.removed(&old);
        }
    }
    Ok(())
}

fn del(table: &mut Table, container: &str, started: u64, now: u64) -> Removal {
    let removal = table.del(&key(container), &at(started), now);
    if let Removal::Remove(_) = removal {
        table.removed(&key(container));
    }
    removal
}

fn containers(table: &Table) -> Vec<&str> {
    table.records().map(|record| record.key.container.as_str()).collect()
}

#[test]
fn k05_the_same_add_again_changes_nothing() {
    let mut table = Table::new(boot());
    let first = record("a", "p", 10);
    assert_eq!(table.add(&first, 10), Add::Write { before: None });
    table.recorded(first.clone());
    assert_eq!(table.add(&first, 11), Add::Standing);
    // The same call with other content is written, and undone as a whole.
    let changed = Record { managed: Managed::OptedOut, ..first.clone() };
    assert_eq!(table.add(&changed, 11), Add::Write { before: None });
    // Another call of the same key that began later takes its place, and an undo puts the first back.
    let later = record("a", "p", 20);
    assert_eq!(table.add(&later, 20), Add::Write { before: Some(Box::new(first)) });
}

#[test]
fn k05_a_new_sandbox_replaces_the_old_one_only_if_it_began_later() {
    let mut table = Table::new(boot());
    add(&mut table, &record("old", "p", 10), 10).unwrap();
    add(&mut table, &record("new", "p", 20), 20).unwrap();
    assert_eq!(containers(&table), ["new"]);
    let refusal = add(&mut table, &record("older", "p", 15), 21).unwrap_err();
    assert!(matches!(&refusal, Refusal::Superseded { by, .. } if *by == key("new")), "{refusal}");
    assert_eq!(containers(&table), ["new"]);
}

#[test]
fn k05_a_replaced_record_is_compared_again_in_its_turn() {
    let mut table = Table::new(boot());
    table.recorded(record("old", "p", 10));
    let new = record("new", "p", 20);
    table.recorded(new.clone());
    assert_eq!(table.replaced_by(&new), [key("old")]);
    // Before its turn comes, the old id is added anew, later than the new one.
    table.recorded(record("old", "p", 30));
    assert_eq!(table.replace(&key("old"), &new), Removal::Spared);
    table.removed(&key("old"));
    assert_eq!(table.replace(&key("old"), &new), Removal::Absent);
}

#[test]
fn k05_a_later_del_of_the_old_id_never_removes_the_new_one() {
    let mut table = Table::new(boot());
    add(&mut table, &record("old", "p", 10), 10).unwrap();
    add(&mut table, &record("new", "p", 20), 20).unwrap();
    assert_eq!(del(&mut table, "old", 1_000, 1_000), Removal::Absent);
    assert_eq!(containers(&table), ["new"]);
}

#[test]
fn k05_pods_that_only_look_alike_do_not_replace_each_other() {
    let mut table = Table::new(boot());
    add(&mut table, &record("a", "p", 10), 10).unwrap();
    add(&mut table, &record("b", "q", 20), 20).unwrap();
    let other_namespace =
        Record { pod: Pod { namespace: "other".into(), ..record("c", "p", 30).pod }, ..record("c", "p", 30) };
    add(&mut table, &other_namespace, 30).unwrap();
    let other_network = Record { network: network("second"), ..record("d", "p", 40) };
    add(&mut table, &other_network, 40).unwrap();
    // Callers that name no pod have none in common.
    add(&mut table, &record("e", "", 50), 50).unwrap();
    add(&mut table, &record("f", "", 60), 60).unwrap();
    assert_eq!(containers(&table), ["a", "b", "c", "d", "e", "f"]);
}

#[test]
fn k05_the_sandbox_recorded_second_sees_that_it_is_superseded() {
    let mut table = Table::new(boot());
    let (old, new) = (record("old", "p", 10), record("new", "p", 20));
    // Both decide before either is written: they have two lanes.
    assert!(matches!(table.add(&old, 20), Add::Write { .. }));
    assert!(matches!(table.add(&new, 20), Add::Write { .. }));
    table.recorded(new.clone());
    assert_eq!(table.replaced_by(&new), []);
    table.recorded(old.clone());
    assert!(matches!(table.superseded(&old), Some(Refusal::Superseded { .. })));
    assert_eq!(table.undo(&old, None), Undo::Remove);
}

#[test]
fn k07_an_add_that_is_older_than_a_remembered_del_is_refused_for_60_seconds() {
    let mut table = Table::new(boot());
    let applied = 1_000;
    assert_eq!(del(&mut table, "a", 100, applied), Removal::Absent);
    let memory = u64::try_from(DEL_MEMORY.as_nanos()).unwrap();
    for (started, now, refused) in [
        (99, applied, true),
        (100, applied, true),
        (101, applied, false),
        (99, applied + memory, true),
        (99, applied + memory + 1, false),
    ] {
        let decision = table.add(&record("a", "p", started), now);
        assert_eq!(matches!(decision, Add::Refuse(Refusal::Deleted { .. })), refused, "{started} {now}");
    }
    // Another key is none of its business.
    assert!(matches!(table.add(&record("b", "p", 1), applied), Add::Write { .. }));
}

#[test]
fn k07_a_late_tombstone_never_deletes_a_newer_add() {
    let mut table = Table::new(boot());
    add(&mut table, &record("a", "p", 20), 20).unwrap();
    assert_eq!(del(&mut table, "a", 19, 30), Removal::Spared);
    assert_eq!(containers(&table), ["a"]);
    // The spared DEL is remembered all the same.
    assert!(matches!(table.add(&record("a", "p", 18), 31), Add::Refuse(_)));
}

#[test]
fn k07_a_tombstone_of_another_boot_is_dropped_and_not_remembered() {
    let mut table = Table::new(boot());
    add(&mut table, &record("a", "p", 20), 20).unwrap();
    let other = Stamp::new(BootId::new("b0"), u64::MAX);
    assert_eq!(table.del(&key("a"), &other, 30), Removal::OtherBoot);
    assert_eq!(containers(&table), ["a"]);
    assert!(matches!(table.add(&record("a", "p", 25), 31), Add::Write { .. }));
}

#[test]
fn k07_an_add_of_another_boot_is_refused() {
    let mut foreign = record("a", "p", 20);
    foreign.started = Stamp::new(BootId::new("b0"), 20);
    assert!(matches!(Table::new(boot()).add(&foreign, 20), Add::Refuse(Refusal::OtherBoot { .. })));
}

#[test]
fn k08_a_key_is_container_and_interface() {
    let mut table = Table::new(boot());
    let first = record("a", "p", 10);
    let second = Record { key: Key::new("a".parse().unwrap(), "net1".parse().unwrap()), ..first.clone() };
    add(&mut table, &first, 10).unwrap();
    add(&mut table, &second, 10).unwrap();
    assert!(matches!(table.del(&second.key, &at(11), 11), Removal::Remove(gone) if *gone == second));
    assert_eq!(table.get(&first.key), Some(&first));
    assert_eq!(table.check(&second.key, None, None), Known::Managed, "not removed before it is said to be");
}

#[test]
fn k09_check_says_what_is_known() {
    let mut table = Table::new(boot());
    add(&mut table, &record("a", "p", 10), 10).unwrap();
    add(&mut table, &Record { managed: Managed::OptedOut, ..record("b", "q", 10) }, 10).unwrap();
    add(&mut table, &Record { managed: Managed::Ignored, ..record("c", "r", 10) }, 10).unwrap();
    for (container, created, installed, known) in [
        ("a", None, None, Known::Managed),
        ("a", Some(1), Some(2), Known::Managed),
        ("b", None, None, Known::Unmanaged),
        ("c", None, None, Known::Unmanaged),
        ("x", Some(1), Some(2), Known::BeforeInstall),
        ("x", Some(2), Some(2), Known::Missing),
        ("x", Some(3), Some(2), Known::Missing),
        ("x", Some(1), None, Known::Missing),
        ("x", None, Some(2), Known::Missing),
    ] {
        assert_eq!(
            table.check(&key(container), created, installed),
            known,
            "{container} {created:?} {installed:?}"
        );
    }
}

#[test]
fn k11_gc_removes_what_is_not_listed_and_spares_what_began_after_it() {
    let mut table = Table::new(boot());
    add(&mut table, &record("listed", "p", 10), 10).unwrap();
    add(&mut table, &record("stale", "q", 10), 10).unwrap();
    add(&mut table, &record("younger", "r", 30), 30).unwrap();
    add(&mut table, &Record { network: network("other"), ..record("elsewhere", "s", 10) }, 10).unwrap();
    let net = network("net");
    let valid = BTreeSet::from([key("listed")]);
    assert_eq!(table.gc(&net, &valid, &at(20)), [key("stale")]);
    // An empty list is all of the network's, and of no other one's.
    assert_eq!(table.gc(&net, &BTreeSet::new(), &at(20)), [key("listed"), key("stale")]);
    assert_eq!(table.gc(&network("none"), &BTreeSet::new(), &at(20)), []);
    // A GC of another boot knows nothing of this one's pods.
    assert_eq!(table.gc(&net, &BTreeSet::new(), &Stamp::new(BootId::new("b0"), u64::MAX)), []);
    // In its turn each is looked at again.
    table.recorded(record("stale", "q", 25));
    assert_eq!(table.gc_one(&key("stale"), &net, &at(20)), Removal::Spared);
    assert!(matches!(table.gc_one(&key("listed"), &net, &at(20)), Removal::Remove(_)));
    assert_eq!(table.gc_one(&key("gone"), &net, &at(20)), Removal::Absent);
}

#[test]
fn k16_an_undo_takes_back_its_own_and_never_what_another_call_recorded() {
    let mut table = Table::new(boot());
    let (first, second) = (record("a", "p", 10), record("a", "p", 20));
    table.recorded(second.clone());
    assert_eq!(table.undo(&second, None), Undo::Remove);
    assert_eq!(table.undo(&second, Some(Box::new(first.clone()))), Undo::Restore(Box::new(first.clone())));
    assert_eq!(table.undo(&first, None), Undo::Nothing);
    table.removed(&second.key);
    assert_eq!(table.undo(&second, None), Undo::Nothing);
}

#[test]
fn s06_records_of_another_boot_are_dropped_at_load() {
    let mut foreign = record("a", "p", 10);
    foreign.started.boot = BootId::new("b0");
    let mut table = Table::new(boot());
    let dropped = table.load(vec![foreign.clone(), record("b", "q", 10)]);
    assert_eq!(dropped, [Dropped { record: foreign, why: Why::OtherBoot }]);
    assert_eq!(containers(&table), ["b"]);
}

#[test]
fn s06_a_swept_record_is_compared_again_in_its_turn() {
    let mut table = Table::new(boot());
    let old = record("a", "p", 10);
    table.recorded(old.clone());
    assert!(matches!(table.sweep_one(&old), Removal::Remove(_)));
    table.recorded(record("a", "p", 20));
    assert_eq!(table.sweep_one(&old), Removal::Spared);
    table.removed(&old.key);
    assert_eq!(table.sweep_one(&old), Removal::Absent);
}

#[test]
fn k05_a_kill_between_two_records_of_one_pod_is_settled_at_load() {
    let mut table = Table::new(boot());
    let (old, new) = (record("old", "p", 10), record("new", "p", 20));
    let dropped = table.load(vec![old.clone(), new.clone()]);
    assert_eq!(dropped, [Dropped { record: old, why: Why::Replaced { by: new.key } }]);
    assert_eq!(containers(&table), ["new"]);
}

/// One thing that happens to a key. All starts of one run differ: the stamps decide.
#[derive(Debug, Clone)]
enum Event {
    Add {
        container: usize,
        started: u64,
    },
    /// Live or from a tombstone: the table does not tell them apart, and must not.
    Del {
        container: usize,
        started: u64,
    },
}

const CONTAINERS: [&str; 3] = ["a", "b", "c"];

fn events(containers: usize, dels_of: usize) -> impl Strategy<Value = Vec<Event>> {
    proptest::collection::vec((0..containers, any::<bool>()), 1..12).prop_map(move |kinds| {
        let stamp = |index: usize| 10 + u64::try_from(index).unwrap();
        kinds
            .into_iter()
            .enumerate()
            .map(|(index, (container, is_add))| {
                if is_add || container >= dels_of {
                    Event::Add { container, started: stamp(index) }
                } else {
                    Event::Del { container, started: stamp(index) }
                }
            })
            .collect()
    })
}

fn shuffled(events: Vec<Event>) -> impl Strategy<Value = (Vec<Event>, Vec<Event>)> {
    (Just(events.clone()), Just(events).prop_shuffle())
}

fn run(events: &[Event], pod: impl Fn(usize) -> String) -> Table {
    let mut table = Table::new(boot());
    for event in events {
        match *event {
            Event::Add { container, started } => {
                let _ = add(&mut table, &record(CONTAINERS[container], &pod(container), started), 1_000);
            }
            Event::Del { container, started } => drop(del(&mut table, CONTAINERS[container], started, 1_000)),
        }
        invariant_one_record_a_pod(&table);
    }
    table
}

fn invariant_one_record_a_pod(table: &Table) {
    for one in table.records() {
        assert!(
            table.records().filter(|other| one.replaces(other)).all(|other| other.started == one.started)
        );
    }
}

proptest! {
    /// Each sandbox a pod of its own: whatever the order of arrival, a sandbox has a record exactly when its latest ADD
    /// began after its latest DEL, and it is that ADD's.
    #[test]
    fn k07_the_order_of_arrival_does_not_matter_where_the_stamps_decide(
        (written, arrived) in events(3, 3).prop_flat_map(shuffled)
    ) {
        let table = run(&arrived, |container| format!("pod-{container}"));
        for (index, container) in CONTAINERS.iter().enumerate() {
            let latest = |adds: bool| written.iter().filter_map(|event| match *event {
                Event::Add { container, started } if adds && container == index => Some(started),
                Event::Del { container, started } if !adds && container == index => Some(started),
                _ => None,
            }).max();
            let expected = latest(true).filter(|add| latest(false).is_none_or(|del| *add > del));
            prop_assert_eq!(table.get(&key(container)).map(|record| record.started.nanos), expected);
        }
    }

    /// Several sandboxes of one pod, with DELs of all but the last: the last one's record is there in the end, whatever
    /// DELs of the others come and when.
    #[test]
    fn k05_dels_of_old_sandboxes_never_remove_the_last_one(
        (written, arrived) in events(3, 2).prop_map(|mut events| {
            events.push(Event::Add { container: 2, started: 1_000 });
            events
        }).prop_flat_map(shuffled)
    ) {
        let table = run(&arrived, |_| "p".to_owned());
        prop_assert_eq!(containers(&table), ["c"], "{:?}", written);
        prop_assert_eq!(table.records().next().map(|record| record.started.nanos), Some(1_000));
    }

    /// Whatever came before: what an ADD was acknowledged for is there, and a refused one changes nothing.
    #[test]
    fn s01_an_acknowledged_add_is_recorded_and_a_refused_one_changes_nothing(
        (_, before) in events(3, 3).prop_flat_map(shuffled), container in 0..3usize, started in 1..40u64,
    ) {
        let mut table = run(&before, |_| "p".to_owned());
        let was: Vec<Record> = table.records().cloned().collect();
        let new = record(CONTAINERS[container], "p", started);
        if add(&mut table, &new, 1_000).is_ok() {
            prop_assert_eq!(table.get(&new.key), Some(&new));
        } else {
            prop_assert_eq!(table.records().cloned().collect::<Vec<_>>(), was);
        }
    }

    /// A decision alone changes no record: only what the store says of the disk does.
    #[test]
    fn s01_a_decision_changes_no_record(
        (_, before) in events(3, 3).prop_flat_map(shuffled), container in 0..3usize, started in 1..40u64,
    ) {
        let mut table = run(&before, |_| "p".to_owned());
        let was: Vec<Record> = table.records().cloned().collect();
        table.add(&record(CONTAINERS[container], "p", started), 1_000);
        table.del(&key(CONTAINERS[container]), &at(started), 1_000);
        table.gc(&network("net"), &BTreeSet::new(), &at(started));
        prop_assert_eq!(table.records().cloned().collect::<Vec<_>>(), was);
    }
}
