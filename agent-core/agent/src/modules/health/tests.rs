use std::sync::Arc;

use aether_chain_watch::Mode;

use super::*;

fn seen(state: State, binary: Binary) -> Observation {
    Observation {
        state,
        file: Some("10-flannel.conflist".to_owned()),
        choice: String::new(),
        plugins: Vec::new(),
        files: Arc::from([]),
        wanted: None,
        healthy: None,
        plugin_sha256: None,
        binary,
        install_id: None,
        mode: Mode::Inotify,
        checked_at: 0,
    }
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ready(health: &Health, now: u64) -> bool {
    health.readiness(at(now)) == Readiness::Ready
}

fn good() -> Observation {
    seen(State::Chained, Binary::Right)
}

fn stripped() -> Observation {
    seen(State::Stripped, Binary::Right)
}

#[test]
fn c08_unchained_for_three_rechecks_is_not_ready_with_the_reason_and_one_recheck_of_right_is() {
    let mut health = Health::new(Reassert::On);
    health.observe(&good(), at(0));
    health.observe(&stripped(), at(100));
    assert!(ready(&health, 114));
    let Readiness::NotReady(why) = health.readiness(at(115)) else { panic!("15 s are three re-checks") };
    assert!(why.contains("stripped") && why.contains("10-flannel.conflist"), "{why}");
    health.observe(&good(), at(120));
    assert!(!ready(&health, 124), "it has to hold for one re-check");
    assert!(ready(&health, 125));
    health.observe(&stripped(), at(130));
    assert!(ready(&health, 144) && !ready(&health, 145), "a new run of it counts anew");
}

#[test]
fn c08_a_strip_that_is_repaired_counts_for_nothing() {
    let mut health = Health::new(Reassert::On);
    for second in 0..60 {
        health.observe(&stripped(), at(second * 10));
        health.observe(&good(), at(second * 10) + Duration::from_millis(20));
        assert!(ready(&health, second * 10 + 9), "{second}");
    }
}

#[test]
fn c08_a_list_that_is_right_for_less_than_a_recheck_at_a_time_is_unchained() {
    let mut health = Health::new(Reassert::On);
    for second in 0..10 {
        health.observe(&stripped(), at(second * 4));
        health.observe(&good(), at(second * 4 + 2));
    }
    assert!(!ready(&health, 38));
}

#[test]
fn c08_uninstalled_is_no_cause_and_a_missing_or_wrong_plugin_is() {
    let wrong = Binary::Wrong { how: "hash".to_owned() };
    for (state, binary, is_ready) in [
        (State::Uninstalled, Binary::Missing, true),
        (State::Chained, Binary::Right, true),
        (State::Chained, Binary::Unknown { why: String::new() }, true),
        (State::Chained, Binary::Missing, false),
        (State::Chained, wrong, false),
        (State::NoList, Binary::Right, false),
        (State::Unknown { why: String::new() }, Binary::Right, false),
    ] {
        let mut health = Health::new(Reassert::On);
        health.observe(&seen(state.clone(), binary.clone()), at(0));
        assert_eq!(ready(&health, 60), is_ready, "{state:?} {binary:?}");
    }
}

#[test]
fn c09_switched_off_the_chain_is_no_cause() {
    let mut health = Health::new(Reassert::Off);
    health.observe(&stripped(), at(0));
    assert!(ready(&health, 1000));
}

#[test]
fn c06_a_fight_counts_as_unchained_until_the_list_stands() {
    let mut health = Health::new(Reassert::On);
    health.observe(&good(), at(0));
    assert_eq!(health.chained.state, Some(true));
    health.fight(at(1));
    for second in (1..50).step_by(8) {
        health.observe(&stripped(), at(second));
        health.observe(&good(), at(second + 1));
        assert_eq!(health.chained.state, Some(false), "{second}");
    }
    assert!(!ready(&health, 50));
    health.observe(&good(), at(109));
    assert_eq!(health.chained.state, Some(true));
    health.observe(&good(), at(114));
    assert!(ready(&health, 115));
}
