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
use aether_module_host::verdict::{By, Decision, Verdict};
use aether_test_guests::{Bench, HOSTILE, REQUIRE_ANNOTATION, pod};

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

#[test]
fn m06_m07_an_audited_policy_takes_no_time_from_those_that_count() {
    let bench = Bench::new();
    let looping = "world = \"pod-policy\"\nmode = \"audit\"\nlimits = { call-ms = 1000 }";
    bench.load("a", looping, HOSTILE).unwrap();
    let good = "world = \"pod-policy\"\nsettings = { annotations = { team = \"\" } }";
    bench.load("b", good, REQUIRE_ANNOTATION).unwrap();
    bench.host.take_over(1);
    let mut asked = pod("loop");
    asked.annotations.push(("team".to_owned(), "shop".to_owned()));
    let evaluated = bench.host.evaluate(&asked);
    assert!(matches!(evaluated.decision, Decision::Admit { .. }), "{evaluated:?}");
    // Reported in the policies' order, whoever was asked first.
    let [a, b] = evaluated.votes.as_slice() else { panic!("{evaluated:?}") };
    assert_eq!((a.module.as_str(), a.by, b.module.as_str(), b.by), ("a", By::FailurePolicy, "b", By::Module));
    assert!(matches!(a.verdict, Verdict::Deny(_)), "{a:?}");
    // It does get what is left, and a denial of the one that counts stays one.
    let evaluated = bench.host.evaluate(&pod("web"));
    assert_eq!(evaluated.votes[0].by, By::Module, "{evaluated:?}");
    assert!(
        matches!(evaluated.decision, Decision::Deny { ref module, .. } if module.as_str() == "b"),
        "{evaluated:?}"
    );
}
