//! The matrix of M05: five ways to fail, three failure policies, with and without a good version before.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use aether_module_host::verdict::{By, Decision};
use aether_test_guests::{Bench, HOSTILE, of, pod};

const POLICIES: [&str; 3] = ["deny", "allow", "last-good"];

fn manifest(on_failure: &str, settings: &str) -> String {
    format!("world = \"pod-policy\"\non-failure = {on_failure:?}\nsettings = {{ {settings} }}")
}

fn admitted(bench: &Bench, name: &str) -> bool {
    let evaluated = bench.host.evaluate(&pod(name));
    assert_eq!(evaluated.votes[0].by, By::FailurePolicy, "{name}: {evaluated:?}");
    matches!(evaluated.decision, Decision::Admit { .. })
}

#[test]
fn m05_missing_and_invalid_modules_count_as_their_failure_policy_says() {
    for on_failure in POLICIES {
        for how in ["missing", "invalid"] {
            let bench = Bench::new();
            bench.put("policy", &manifest(on_failure, ""), b"text");
            if how == "missing" {
                std::fs::remove_file(bench.modules().join("policy.wasm")).unwrap();
            }
            let error = of(&bench.host.rescan(), "policy").unwrap_err();
            bench.host.take_over(1);
            // With no version before, last-good has none to fall back to.
            assert_eq!(admitted(&bench, "web"), on_failure == "allow", "{how} {on_failure}");
            assert_eq!(bench.status("policy").problem, error);
        }
    }
}

#[test]
fn m05_trap_timeout_and_memory_count_as_the_failure_policy_says() {
    for on_failure in POLICIES {
        for how in ["panic", "loop", "memory"] {
            let bench = Bench::new();
            bench.load("policy", &manifest(on_failure, ""), HOSTILE).unwrap();
            bench.host.take_over(1);
            assert_eq!(admitted(&bench, how), on_failure == "allow", "{how} {on_failure}");
        }
    }
}

#[test]
fn m05_m08_a_good_version_goes_on_when_its_file_goes_or_is_broken_whatever_the_failure_policy() {
    for on_failure in POLICIES {
        for how in ["missing", "invalid"] {
            let bench = Bench::new();
            bench.load("policy", &manifest(on_failure, "deny = \"x\""), HOSTILE).unwrap();
            bench.host.take_over(1);
            match how {
                "missing" => std::fs::remove_file(bench.modules().join("policy.wasm")).unwrap(),
                _ => aether_test_guests::write(&bench.modules().join("policy.wasm"), b"text"),
            }
            let error = of(&bench.host.rescan(), "policy").unwrap_err();
            let evaluated = bench.host.evaluate(&pod("web"));
            assert_eq!(evaluated.votes[0].by, By::Module, "{how} {on_failure}");
            assert!(matches!(evaluated.decision, Decision::Deny { denial, .. } if denial.code == "x"));
            let status = bench.status("policy");
            assert_eq!((status.state, status.problem), ("enabled", error));
        }
    }
}

#[test]
fn m05_last_good_asks_the_version_before() {
    let bench = Bench::new();
    let good = aether_test_guests::REQUIRE_ANNOTATION;
    bench.load("policy", &manifest("last-good", "annotations = { team = \"\" }"), good).unwrap();
    bench.load("policy", &manifest("last-good", ""), HOSTILE).unwrap();
    bench.host.take_over(1);
    for how in ["panic", "loop", "memory"] {
        let evaluated = bench.host.evaluate(&pod(how));
        assert_eq!(evaluated.votes[0].by, By::FailurePolicy, "{how}");
        assert!(
            matches!(evaluated.decision, Decision::Deny { denial, .. } if denial.code == "annotation"),
            "{how}"
        );
    }
}
