use super::*;
use proptest::prelude::*;

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[test]
fn m02_a_module_waits_on_a_standby_and_is_enabled_at_the_takeover() {
    let mut machine = Machine::new(Role::Standby);
    assert_eq!(machine.step(Input::Initialised, secs(0)), Step::Rest);
    assert_eq!(machine.state(), State::Disabled);
    assert_eq!(machine.step(Input::Owns, secs(1)), Step::Enable);
    assert_eq!(machine.step(Input::Enabled, secs(1)), Step::Rest);
    assert_eq!(machine.state(), State::Enabled);
    assert_eq!(machine.step(Input::Lost, secs(2)), Step::Disable);
    assert_eq!(machine.state(), State::Disabled);
}

#[test]
fn m02_a_fault_backs_off_doubling_and_the_fifth_quarantines() {
    let mut machine = Machine::new(Role::Owner);
    let mut now = secs(0);
    for wait_ms in [250, 500, 1000, 2000] {
        machine.step(Input::Initialised, now);
        machine.step(Input::Enabled, now);
        assert_eq!(machine.step(Input::Fault, now), Step::Drop);
        let retry_at = now + Duration::from_millis(wait_ms);
        assert_eq!(machine.state(), State::Faulted { retry_at });
        assert_eq!(machine.step(Input::Tick, retry_at.saturating_sub(Duration::from_millis(1))), Step::Rest);
        assert_eq!(machine.step(Input::Tick, retry_at), Step::Instantiate);
        now = retry_at;
    }
    machine.step(Input::Initialised, now);
    assert_eq!(machine.step(Input::Fault, now), Step::Drop);
    assert_eq!(machine.state(), State::Quarantined);
    assert_eq!(machine.step(Input::Tick, secs(100_000)), Step::Rest);
    assert_eq!(machine.step(Input::Replaced, secs(100_000)), Step::Instantiate);
}

#[test]
fn m02_old_faults_are_forgotten() {
    let mut machine = Machine::new(Role::Owner);
    for round in 0..50 {
        let now = secs(700 * round);
        machine.step(Input::Tick, now);
        machine.step(Input::Initialised, now);
        machine.step(Input::Enabled, now);
        machine.step(Input::Fault, now);
        assert_eq!(machine.state(), State::Faulted { retry_at: now + BACKOFF });
    }
}

fn input() -> impl Strategy<Value = Input> {
    prop::sample::select(vec![
        Input::Replaced,
        Input::Refused,
        Input::Initialised,
        Input::Owns,
        Input::Lost,
        Input::Enabled,
        Input::Fault,
        Input::Tick,
    ])
}

proptest! {
    #[test]
    fn m02_invariants_hold_over_any_history(inputs in prop::collection::vec((input(), 0u64..2_000), 0..200)) {
        let mut machine = Machine::new(Role::Standby);
        let mut owner = false;
        let mut now = Duration::ZERO;
        for (input, ms) in inputs {
            now += Duration::from_millis(ms);
            let before = machine.state();
            let step = machine.step(input, now);
            match input { Input::Owns => owner = true, Input::Lost => owner = false, _ => {} }
            // Nothing acts on a standby.
            prop_assert!(owner || machine.state() != State::Enabled);
            prop_assert!(owner || step != Step::Enable);
            // Enabled only out of disabled, so never without an initialised instance.
            if machine.state() == State::Enabled {
                prop_assert!(matches!(before, State::Disabled | State::Enabled));
            }
            // Quarantine and rejection end only by a change.
            if matches!(before, State::Quarantined | State::Rejected) && machine.state() != before {
                prop_assert!(matches!(input, Input::Replaced | Input::Refused));
            }
            // A wait is never longer than its bound, and never in the past.
            if let State::Faulted { retry_at } = machine.state() {
                prop_assert!(retry_at <= now + BACKOFF_MAX || before == machine.state());
            }
            // A new instance is asked for where there is none, and a replacement always asks for one.
            prop_assert!(step != Step::Instantiate || machine.state() == State::Loaded);
            prop_assert!(input != Input::Replaced || step == Step::Instantiate);
        }
    }
}
