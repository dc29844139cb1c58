//! Behaviours: what they may stage, what is performed, and what becomes of those that fail.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aether_module_host::action::{Action, TaintEffect};
use aether_module_host::lifecycle::FAULTS_MAX;
use aether_module_host::ports::{Condition, NodeView, Taint, UpstreamsSummary};
use aether_test_guests::{Bench, ROGUE_LIST, ROGUE_TAINT};

const LIST: &str = "{\n  \"name\": \"cbr0\",\n  \"plugins\": [\n    {\"type\": \"flannel\"},\n    {\"type\": \"portmap\"}\n  ]\n}\n";
const WANTED: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock"}"#;
const KEY: &str = "aether.io/agent-not-ready";

fn taint(key: &str) -> Taint {
    Taint { key: key.to_owned(), value: None, effect: TaintEffect::NoSchedule }
}

fn ready() -> NodeView {
    let condition = |name: &str| Condition { name: name.to_owned(), state: Some(true), held_for: 60_000 };
    NodeView {
        taints: vec![taint(KEY), taint("other")],
        owned_for: Some(60_000),
        conditions: vec![condition("cni-serving"), condition("chained")],
    }
}

fn builtins() -> Bench {
    let bench = Bench::with(&aether_test_guests::builtins());
    bench.host.builtins_ready().unwrap();
    bench
}

fn gate(bench: &Bench, act: &str, key: &str) {
    let manifest = format!(
        "world = \"taint-gate\"\ngrant = {{ node = {{ view = true, remove-taints = [\"mine\"] }} }}\nsettings = {{ act = {act:?}, key = {key:?} }}"
    );
    bench.load("gate", &manifest, ROGUE_TAINT).unwrap();
}

#[test]
fn c02_m01_a_strip_is_repaired_by_the_built_in_module_and_every_other_byte_is_kept() {
    let bench = builtins();
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    bench.host.take_over(1);
    bench.node.wait("the repair", |node| node.conflist.state == "chained");
    let text = String::from_utf8(bench.node.state().conflist.files[0].bytes.to_vec()).unwrap();
    assert!(
        text.starts_with("{\n  \"name\": \"cbr0\",\n  \"plugins\": [\n    {\"type\": \"flannel\"}"),
        "{text}"
    );
    assert!(text.contains("aether-cni") && text.ends_with("\n  ]\n}\n"), "{text}");
    // Stripped again: an event brings the next repair.
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    bench.host.notify("aether:conflist", "");
    bench.node.wait("the second repair", |node| node.performed.len() == 2);
    bench.wait("conflist-reassert", "counted", |status| {
        status.counts.actions.get(&("replace-list", "done")) == Some(&2)
    });
}

#[test]
fn c06_a_fight_is_answered_ever_later_and_raises_one_event() {
    let bench = builtins();
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    bench.host.take_over(1);
    for repairs in 1..=7 {
        bench.node.wait("a repair", |node| node.performed.len() == repairs);
        bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
        bench.host.notify("aether:conflist", "");
    }
    bench.node.wait("the event", |node| !node.events.is_empty());
    let event = bench.node.state().events[0].clone();
    assert_eq!((event.reason.as_str(), event.about.as_str()), ("ConflistFight", "10-flannel.conflist"));
    assert!(event.message.contains("uid 0"), "{}", event.message);
    let status = bench.wait("conflist-reassert", "says so", |status| status.note.contains("a fight"));
    assert_eq!(status.state, "enabled");
    assert_eq!(bench.node.state().events.len(), 1);
}

#[test]
fn c04_c07_nothing_is_written_on_a_standby_nor_into_what_is_invalid() {
    let bench = builtins();
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    bench.host.notify("aether:conflist", "");
    assert_eq!(bench.status("conflist-reassert").state, "disabled");
    assert_eq!(bench.status("conflist-reassert").counts.calls, 0);
    bench.node.put_list("10-flannel.conflist", "{", "invalid", WANTED);
    bench.host.take_over(1);
    bench.wait("conflist-reassert", "looked", |status| status.counts.calls > 0);
    assert!(bench.node.state().performed.is_empty());
}

#[test]
fn n02_m01_the_taint_gate_removes_its_own_taint_and_no_other() {
    let bench = builtins();
    bench.node.state().node = ready();
    bench.host.take_over(1);
    bench.node.wait("the removal", |node| !node.performed.is_empty());
    let wanted = Action::RemoveTaint { key: KEY.to_owned(), effect: TaintEffect::NoSchedule };
    assert_eq!(bench.node.state().performed, [wanted]);
    bench.wait("taint-gate", "looked again", |status| status.counts.calls >= 2);
    assert_eq!(bench.node.state().node.taints, [taint("other")]);
}

#[test]
fn m01_the_upstream_flush_writes_what_waits_at_the_end() {
    let bench = builtins();
    bench.host.take_over(1);
    bench.node.state().upstreams =
        UpstreamsSummary { total: 1, dirty: 1, oldest_dirty: Some(u64::MAX), last_flush: None };
    bench.host.stop();
    assert_eq!(bench.node.state().performed, [Action::FlushUpstreams]);
}

/// A disk that is full stays full for a while: no processor is kept busy by it, and no log filled.
#[test]
fn m01_m03_an_action_that_fails_again_and_again_is_performed_ever_later() {
    let bench = builtins();
    {
        let mut state = bench.node.state();
        state.upstreams = UpstreamsSummary { total: 1, dirty: 1, oldest_dirty: Some(0), last_flush: None };
        state.failing = Some("no space left on device".to_owned());
    }
    let began = Instant::now();
    bench.host.take_over(1);
    let times = |times: usize| {
        bench.node.wait("the attempts", |node| node.performed.len() >= times);
        began.elapsed()
    };
    // 50, 100, 200, 400 and 800 ms lie between them.
    assert!(times(6) >= Duration::from_secs(1), "{:?}", began.elapsed());
    bench.node.state().failing = None;
    bench.wait("upstream-flush", "done", |status| {
        status.counts.actions.contains_key(&("flush-upstreams", "done"))
    });
}

/// Whoever waits for the built-in modules looks at them only when they are told of a change.
#[test]
fn m08_a_behaviour_that_goes_is_told_as_a_change() {
    let bench = Bench::new();
    gate(&bench, "", "mine");
    let before = bench.node.state().changes;
    std::fs::remove_file(bench.modules().join("gate.toml")).unwrap();
    std::fs::remove_file(bench.modules().join("gate.wasm")).unwrap();
    bench.host.rescan();
    assert!(bench.host.status().is_empty());
    assert_ne!(bench.node.state().changes, before);
}

#[test]
fn m03_a_taint_outside_the_grant_is_refused_when_it_is_staged() {
    let bench = Bench::new();
    bench.host.take_over(1);
    gate(&bench, "", "theirs");
    let status = bench.wait("gate", "was called", |status| !status.note.is_empty());
    assert_eq!(status.note, "not granted: grant.node.remove-taints does not hold theirs");
    assert!(bench.node.state().performed.is_empty());
}

#[test]
fn m03_what_changes_somebody_elses_entry_or_another_file_is_refused() {
    for (act, words) in [
        ("alter-foreign", "changes something outside the entry of aether-cni"),
        ("swap-foreign", "changes something outside the entry of aether-cni"),
        ("ours-first", "puts the entry of aether-cni before others, where it did not stand"),
        ("other-file", "not granted: grant.conflist.edit does not cover 99-other.conflist"),
        ("garbage", "would not be loaded"),
        ("unchanged", "holds 0 entries of aether-cni that are the wanted one"),
        ("flood", "too many actions in one call"),
        ("event", "grant.events does not hold SomethingElse"),
    ] {
        let bench = Bench::new();
        bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
        bench.host.take_over(1);
        let manifest = format!(
            "world = \"conflist-reassert\"\nsettings = {{ act = {act:?} }}\n[grant]\nevents = [\"ConflistFight\"]\nconflist = {{ view = [\"*\"], edit = [\"10-*\"], restore-plugin = true }}"
        );
        bench.load("rogue", &manifest, ROGUE_LIST).unwrap();
        let status = bench.wait("rogue", "was called", |status| !status.note.is_empty());
        assert!(status.note.contains(words), "{act}: {}", status.note);
        let replaced = bench.node.state().performed.iter().any(|a| matches!(a, Action::ReplaceList { .. }));
        assert!(!replaced, "{act}");
    }
}

#[test]
fn m03_an_action_staged_as_owner_is_dropped_when_ownership_is_lost_before_it_is_performed() {
    let bench = Bench::new();
    let ownership = bench.host.ownership().clone();
    assert_eq!(ownership.generation(), None);
    gate(&bench, "", "mine");
    let bench = Arc::new(bench);
    let weak = Arc::downgrade(&bench);
    // Ownership goes while the performer waits for its lock: it asks its permit again.
    let lose = move || {
        if let Some(bench) = weak.upgrade() {
            bench.host.lose();
        }
    };
    bench.node.state().before = Some(Arc::new(lose));
    bench.host.take_over(1);
    bench.wait("gate", "the action came to nothing", |status| {
        status.counts.actions.get(&("remove-taint", "dropped")) == Some(&1)
    });
    assert!(bench.node.state().performed.is_empty());
    bench.node.state().before = None;
}

/// It may have saved what it knows of its predecessor's tickets, and must not take them for its own.
#[test]
fn m03_m08_a_new_version_is_told_what_came_of_the_old_ones_actions_under_the_old_ones_tickets() {
    let bench = Arc::new(Bench::new());
    bench.host.take_over(1);
    let (weak, swapped) = (Arc::downgrade(&bench), AtomicBool::new(false));
    // The version is replaced while an action of the old one is being performed.
    let swap = move || {
        if let Some(bench) = weak.upgrade()
            && !swapped.swap(true, Ordering::Relaxed)
        {
            gate(&bench, "another", "mine");
        }
    };
    bench.node.state().before = Some(Arc::new(swap));
    gate(&bench, "", "mine");
    let status = bench.wait("gate", "was told", |status| status.note.contains("not its own"));
    assert_eq!(status.note, "told of the tickets [1], which are not its own");
    bench.node.state().before = None;
}

#[test]
fn m03_what_a_failing_call_staged_is_dropped() {
    for act in ["stage-then-trap", "stage-then-fault"] {
        let bench = Bench::new();
        bench.host.take_over(1);
        gate(&bench, act, "mine");
        bench.wait("gate", "it failed", |status| !status.counts.failures.is_empty());
        assert!(bench.node.state().performed.is_empty(), "{act}");
        assert!(bench.status("gate").counts.actions.is_empty(), "{act}");
    }
}

#[test]
fn m02_a_module_that_traps_again_and_again_is_faulted_then_quarantined_until_it_changes() {
    let bench = Bench::with(&aether_test_guests::builtins());
    bench.host.take_over(1);
    gate(&bench, "third", "mine");
    let status = bench.wait("gate", "faulted", |status| status.state == "faulted");
    assert!(status.last_error.contains("every third call"), "{}", status.last_error);
    let status = bench.wait("gate", "quarantined", |status| status.state == "quarantined");
    assert_eq!(status.counts.failures["trap"], u64::try_from(FAULTS_MAX).unwrap());
    assert_eq!(bench.status("taint-gate").state, "enabled");
    gate(&bench, "", "mine");
    bench.wait("gate", "enabled again", |status| status.state == "enabled");
}

#[test]
fn m02_m03_what_a_new_instance_stages_after_a_fault_is_performed_at_once() {
    let bench = Bench::new();
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    bench.host.take_over(1);
    let manifest = "world = \"conflist-reassert\"\nsettings = { act = \"fall-at-news\" }\ngrant = { events = [\"ConflistFight\"], conflist = { view = [\"*\"], restore-plugin = true } }";
    bench.load("rogue", manifest, ROGUE_LIST).unwrap();
    bench.node.wait("what the first instance staged", |node| node.performed.len() == 1);
    bench.host.notify("aether:conflist", "");
    // It asked to be called again in an hour only: nothing but the action itself brings it about.
    bench.node.wait("what the second instance staged", |node| node.performed.len() == 2);
    assert_eq!(bench.status("rogue").counts.failures["trap"], 1);
}

#[test]
fn m02_settings_that_are_wrong_are_not_tried_again() {
    let bench = Bench::new();
    let manifest = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"mine\"] } }\nsettings = { act = \"config\" }";
    let error = bench.load("gate", manifest, ROGUE_TAINT).unwrap_err();
    assert!(error.contains("this can never be"), "{error}");
    assert_eq!(bench.status("gate").state, "rejected");
}

#[test]
fn m06_an_audited_behaviour_stages_and_nothing_is_performed() {
    let bench = Bench::new();
    bench.host.take_over(1);
    let manifest = "world = \"taint-gate\"\nmode = \"audit\"\ngrant = { node = { view = true, remove-taints = [\"mine\"] } }\nsettings = { act = \"\", key = \"mine\" }";
    bench.load("gate", manifest, ROGUE_TAINT).unwrap();
    bench.wait("gate", "dropped", |status| {
        status.counts.actions.get(&("remove-taint", "dropped")) == Some(&1)
    });
    assert!(bench.node.state().performed.is_empty());
}

#[test]
fn m08_where_a_replacement_of_a_built_in_module_is_broken_the_embedded_one_runs_and_status_says_so() {
    let bench = builtins();
    let error = bench.load("taint-gate", "world = \"taint-gate\"", b"text").unwrap_err();
    bench.host.builtins_ready().unwrap();
    let status = bench.status("taint-gate");
    assert_eq!((status.state, status.source.name(), status.problem), ("disabled", "builtin", error));
    let manifest = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"mine\"] } }\nsettings = { act = \"\", key = \"mine\" }";
    bench.load("taint-gate", manifest, ROGUE_TAINT).unwrap();
    assert_eq!(bench.status("taint-gate").source.name(), "operator");
    std::fs::remove_file(bench.modules().join("taint-gate.toml")).unwrap();
    std::fs::remove_file(bench.modules().join("taint-gate.wasm")).unwrap();
    bench.host.rescan();
    let status = bench.status("taint-gate");
    assert_eq!((status.source.name(), status.problem.as_str()), ("builtin", ""));
}
