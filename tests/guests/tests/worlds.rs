//! A module whose manifest says another world than before (M08): a name is a policy's or a behaviour's, never both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use aether_module_host::verdict::Decision;
use aether_test_guests::{Bench, HOSTILE, ROGUE_LIST, ROGUE_TAINT, pod};

fn denies(code: &str) -> String {
    format!("world = \"pod-policy\"\nsettings = {{ deny = {code:?} }}")
}

/// A module of a world that acts, which does nothing by itself.
const GATE: &str = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"x\"] } }\nsettings = { act = \"\" }";

/// The worlds that there is a status for, by name.
fn worlds(bench: &Bench) -> Vec<(String, &'static str, &'static str)> {
    let one =
        |status: aether_module_host::status::Status| (status.name.to_string(), status.world, status.state);
    bench.host.status().into_iter().map(one).collect()
}

#[test]
fn m08_a_policy_that_becomes_a_behaviour_is_asked_no_more_and_one_that_cannot_start_changes_nothing() {
    let bench = Bench::new();
    bench.load("team", &denies("a"), HOSTILE).unwrap();
    bench.host.take_over(1);
    let error = bench.load("team", GATE, b"text").unwrap_err();
    assert_eq!(worlds(&bench), [("team".to_owned(), "pod-policy", "enabled")]);
    assert_eq!(bench.status("team").problem, error);
    assert!(matches!(bench.host.evaluate(&pod("web")).decision, Decision::Deny { .. }));
    bench.load("team", GATE, ROGUE_TAINT).unwrap();
    assert_eq!(worlds(&bench), [("team".to_owned(), "taint-gate", "enabled")]);
    assert!(bench.host.evaluate(&pod("web")).votes.is_empty());
}

#[test]
fn m08_a_behaviour_that_becomes_a_policy_ends() {
    for component in [HOSTILE, b"text"] {
        let bench = Bench::new();
        bench.load("team", GATE, ROGUE_TAINT).unwrap();
        bench.host.take_over(1);
        assert_eq!(worlds(&bench), [("team".to_owned(), "taint-gate", "enabled")]);
        let taken = bench.load("team", &denies("a"), component);
        let state = if taken.is_ok() { "enabled" } else { "rejected" };
        assert_eq!(worlds(&bench), [("team".to_owned(), "pod-policy", state)]);
        assert!(matches!(bench.host.evaluate(&pod("web")).decision, Decision::Deny { .. }));
    }
}

#[test]
fn m08_a_behaviour_of_another_world_takes_the_place_of_the_one_before() {
    let bench = Bench::new();
    bench.load("team", GATE, ROGUE_TAINT).unwrap();
    bench.host.take_over(1);
    let list = "world = \"conflist-reassert\"\nsettings = { act = \"\" }\n[grant]\nevents = [\"ConflistFight\"]\nconflist = { view = [\"*\"], edit = [\"10-*\"], restore-plugin = true }";
    let ungranted = "world = \"conflist-reassert\"\nsettings = { act = \"\" }";
    for (manifest, component) in [(list, &b"text"[..]), (ungranted, ROGUE_LIST)] {
        let error = bench.load("team", manifest, component).unwrap_err();
        assert_eq!(worlds(&bench), [("team".to_owned(), "taint-gate", "enabled")]);
        assert_eq!(bench.status("team").problem, error);
    }
    bench.load("team", list, ROGUE_LIST).unwrap();
    assert_eq!(worlds(&bench), [("team".to_owned(), "conflist-reassert", "enabled")]);
}

#[test]
fn m08_what_never_ran_makes_way_for_what_the_manifest_says_now() {
    let bench = Bench::new();
    bench.host.take_over(1);
    let list = "world = \"conflist-reassert\"";
    for (manifest, world) in [
        ("world = ", "pod-policy"),
        (GATE, "taint-gate"),
        (list, "conflist-reassert"),
        ("world = \"pod-policy\"", "pod-policy"),
        (list, "conflist-reassert"),
    ] {
        bench.load("team", manifest, b"text").unwrap_err();
        assert_eq!(worlds(&bench), [("team".to_owned(), world, "rejected")], "{manifest}");
        let denies = matches!(bench.host.evaluate(&pod("web")).decision, Decision::Deny { .. });
        assert_eq!(denies, world == "pod-policy", "{manifest}");
    }
}
