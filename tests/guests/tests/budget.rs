//! The time that all policies have together at one ADD: whatever they spend it on, and whoever spends it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::time::{Duration, Instant};

use aether_module_host::UNAVAILABLE;
use aether_module_host::verdict::{By, Decision};
use aether_test_guests::{Bench, HOSTILE, pod};

const SHORT: Duration = Duration::from_millis(100);
/// What such a budget may take on a busy machine: less than a slow `init` takes.
const GENEROUS: Duration = Duration::from_secs(2);
/// It passes its trial, which has all the time that its own limits leave it.
const SLOW_INIT: &str =
    "world = \"pod-policy\"\nlimits = { init-ms = 10000 }\nsettings = { init = \"slow\" }\n";

#[test]
fn m04_m05_the_time_of_an_add_bounds_a_slow_init_too() {
    for (terms, admits) in [("on-failure = \"allow\"", true), ("mode = \"audit\"", true), ("", false)] {
        let bench = Bench::within(SHORT);
        bench.load("policy", &format!("{terms}\n{SLOW_INIT}"), HOSTILE).unwrap();
        bench.host.take_over(1);
        let began = Instant::now();
        let evaluated = bench.host.evaluate(&pod("web"));
        let took = began.elapsed();
        assert!(took < GENEROUS, "{terms}: {took:?}");
        assert_eq!(matches!(evaluated.decision, Decision::Admit { .. }), admits, "{terms}: {evaluated:?}");
        assert_eq!(evaluated.votes[0].by, By::FailurePolicy, "{terms}");
        let status = bench.status("policy");
        assert_eq!(status.counts.failures.get("budget"), Some(&1), "{terms}: {status:?}");
        assert_eq!(
            status.last_error,
            "init was stopped when the time that all policies have together at one ADD was over: make it quicker, or give the agent a higher --policy-budget-ms"
        );
    }
}

#[test]
fn m04_the_time_of_an_add_bounds_evaluate_below_the_modules_own_limit() {
    let bench = Bench::within(SHORT);
    bench.load("policy", "world = \"pod-policy\"\nlimits = { call-ms = 1000 }", HOSTILE).unwrap();
    bench.host.take_over(1);
    let evaluated = bench.host.evaluate(&pod("loop"));
    assert!(
        matches!(evaluated.decision, Decision::Deny { ref denial, .. } if denial.code == UNAVAILABLE),
        "{evaluated:?}"
    );
    let status = bench.status("policy");
    assert!(status.last_error.starts_with("evaluate was stopped when the time"), "{}", status.last_error);
    assert_eq!(status.counts.failures.get("deadline"), None, "{status:?}");
}
