//! Policies that load and then behave badly at `init` or at `evaluate`, under the limits that they have by default.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::time::{Duration, Instant};

use aether_module_host::verdict::{By, Decision, Retry, Verdict};
use aether_module_host::{NOT_GRANTED, UNAVAILABLE};
use aether_test_guests::{Bench, HOSTILE, pod};

fn bench(manifest: &str) -> Bench {
    loaded(Bench::new(), manifest)
}

fn loaded(bench: Bench, manifest: &str) -> Bench {
    bench.load("policy", &format!("world = \"pod-policy\"\n{manifest}"), HOSTILE).unwrap();
    bench.host.take_over(1);
    bench
}

/// One misdeed: it is stopped, counted as this kind with these words, and the next pod is served.
fn misdeed(bench: &Bench, name: &str, kind: &str, words: &str) {
    let evaluated = bench.host.evaluate(&pod(name));
    let Decision::Deny { module, denial } = &evaluated.decision else { panic!("{name}: {evaluated:?}") };
    assert_eq!((module.as_str(), denial.code.as_str(), denial.retry), ("policy", UNAVAILABLE, Retry::Later));
    let status = bench.status("policy");
    assert_eq!(status.counts.failures.get(kind).copied(), Some(1), "{name}: {status:?}");
    assert!(status.last_error.contains(words), "{name}: {}", status.last_error);
    assert_eq!(status.state, "enabled", "{name}");
    assert_eq!(bench.host.evaluate(&pod("web")).decision, Decision::Admit { changes: vec![] }, "{name}");
}

#[test]
fn m04_an_endless_loop_at_evaluate_ends_in_time() {
    for name in ["loop", "host-loop"] {
        // The policy's own limit is what ends it, not the time of all policies.
        let bench = loaded(Bench::patient(), "");
        let began = Instant::now();
        misdeed(
            &bench,
            name,
            "deadline",
            "evaluate used more than 10 ms and was stopped: raise limits.call-ms",
        );
        // 10 ms of the processor, however busy the machine is.
        assert!(began.elapsed() < Duration::from_secs(5), "{name}: {:?}", began.elapsed());
    }
}

#[test]
fn m04_every_other_misdeed_at_evaluate_is_stopped_and_named() {
    for (name, memory, kind, words) in [
        ("memory", "16Mi", "memory", "where limits.memory is 16777216"),
        // The stack that the guest has in its memory, and the one that the host lends it.
        ("deep", "16Mi", "trap", "evaluate trapped: wasm trap: out of bounds memory access"),
        ("deep-bare", "16Mi", "trap", "evaluate trapped: wasm trap: call stack exhausted"),
        // Room for the value in the guest: it is the host that refuses to take it.
        (
            "large",
            "64Mi",
            "result",
            "evaluate handed the host more than the 1048576 bytes of limits.result at once: raise that, or hand over less",
        ),
        ("panic", "16Mi", "trap", "a panic with its reason"),
    ] {
        let limits = format!("limits = {{ call-ms = 1000, memory = {memory:?} }}");
        misdeed(&loaded(Bench::patient(), &limits), name, kind, words);
    }
}

#[test]
fn m04_every_misdeed_at_init_keeps_the_module_from_being_loaded() {
    for (name, words) in [
        ("loop", "init used more than 100 ms"),
        ("host-loop", "limits.init-ms"),
        ("memory", "init ran out of memory"),
        ("deep", "init trapped"),
        ("panic", "a panic with its reason"),
    ] {
        let bench = Bench::new();
        let manifest = format!("world = \"pod-policy\"\nsettings = {{ init = {name:?} }}");
        let error = bench.load("policy", &manifest, HOSTILE).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
        assert_eq!(bench.status("policy").state, "rejected");
    }
}

#[test]
fn m04_settings_that_the_module_refuses_are_said() {
    let bench = Bench::new();
    let error = bench.load("policy", "world = \"pod-policy\"\nsettings = { x = 1 }", HOSTILE).unwrap_err();
    assert!(error.contains("[settings] is wrong") && error.contains("unknown field `x`"), "{error}");
}

#[test]
fn m13_log_lines_over_the_rate_are_dropped_and_counted() {
    let bench = bench("limits = { call-ms = 1000, log-lines-per-minute = 10 }");
    let evaluated = bench.host.evaluate(&pod("log"));
    // The time of all policies bounds it below what limits.call-ms allows: whether it came to an end is not the point.
    assert_eq!(evaluated.votes.len(), 1);
    assert!(bench.status("policy").log_lines_dropped > 100);
    assert_eq!(bench.host.evaluate(&pod("web")).decision, Decision::Admit { changes: vec![] });
}

#[test]
fn m05_one_pod_that_crashes_a_policy_does_not_switch_it_off_for_others() {
    let bench = bench("settings = { deny = \"x\" }");
    for _ in 0..100 {
        let evaluated = bench.host.evaluate(&pod("panic"));
        assert!(matches!(evaluated.decision, Decision::Deny { .. }));
        let other = bench.host.evaluate(&pod("web"));
        assert_eq!(other.votes[0].by, By::Module);
        assert!(matches!(other.decision, Decision::Deny { denial, .. } if denial.code == "x"));
    }
    let status = bench.status("policy");
    assert_eq!(status.state, "enabled");
    assert_eq!(
        status.counts.failures["trap"], 2,
        "a pod is evaluated twice in vain, then not again: {status:?}"
    );
}

#[test]
fn m07_every_verdict_is_passed_on_and_a_change_that_is_not_granted_is_a_denial() {
    let bench = bench("grant = { change = [\"label\"] }");
    let decide = |name: &str| bench.host.evaluate(&pod(name)).decision;
    assert!(matches!(decide("ignore"), Decision::Ignore { reason, .. } if reason == "left alone"));
    assert_eq!(decide("abstain"), Decision::Admit { changes: vec![] });
    assert!(matches!(decide("label"), Decision::Admit { changes } if changes.len() == 1));
    let Decision::Deny { denial, .. } = decide("bypass") else { panic!() };
    assert_eq!((denial.code.as_str(), denial.retry), (NOT_GRANTED, Retry::No));
    assert!(denial.message.contains("bypass-port"), "{}", denial.message);
    let Decision::Deny { denial, .. } = decide("long-ish") else { panic!() };
    assert!(denial.code.len() <= 64);
    let verdicts = bench.status("policy").counts.verdicts;
    assert_eq!(verdicts[&("module", "ignore")], 1, "{verdicts:?}");
    assert_eq!(verdicts[&("module", "deny")], 2, "{verdicts:?}");
}

#[test]
fn m06_an_audited_policy_is_reported_and_cannot_deny() {
    let bench = bench("mode = \"audit\"\nsettings = { deny = \"x\" }");
    for name in ["web", "panic"] {
        let evaluated = bench.host.evaluate(&pod(name));
        assert_eq!(evaluated.decision, Decision::Admit { changes: vec![] });
        assert!(matches!(evaluated.votes[0].verdict, Verdict::Deny(_)), "{evaluated:?}");
    }
    assert_eq!(bench.status("policy").counts.verdicts[&("module", "deny")], 1);
}

#[test]
fn m07_pods_of_exempt_namespaces_are_admitted_before_any_policy_runs() {
    let bench = bench("settings = { deny = \"x\" }");
    let mut exempt = pod("loop");
    exempt.namespace = "kube-system".to_owned();
    let evaluated = bench.host.evaluate(&exempt);
    assert_eq!(evaluated.decision, Decision::Admit { changes: vec![] });
    assert_eq!(bench.status("policy").counts.calls, 0);
}

#[test]
fn m04_warm_instances_are_used_again_and_replaced_after_a_trap() {
    let bench = bench("instances = \"warm\"");
    for name in ["web", "panic", "web", "loop", "web"] {
        let admitted = matches!(bench.host.evaluate(&pod(name)).decision, Decision::Admit { .. });
        assert_eq!(admitted, name == "web", "{name}");
    }
}
