//! Prints what modules cost (medians and p99): `cargo run --release -p aether-test-guests --example bench-modules`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::time::{Duration, Instant};

use aether_module_host::pod::Pod;
use aether_test_guests::{Bench, REQUIRE_ANNOTATION, builtins, pod};

const ROUNDS: usize = 2000;
const TAKEOVERS: usize = 200;

fn main() {
    let pod = large();
    let strings: usize = pod.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    println!("a pod with {strings} bytes of annotations, {ROUNDS} calls");
    for (what, instances) in [("warm evaluate", "warm"), ("fresh instance + init + evaluate", "per-call")] {
        let bench = Bench::new();
        let manifest = format!(
            "world = \"pod-policy\"\ninstances = {instances:?}\nsettings = {{ annotations = {{ \"note-0\" = \"\" }} }}"
        );
        bench.load("policy", &manifest, REQUIRE_ANNOTATION).expect("the example loads");
        bench.host.take_over(1);
        for _ in 0..100 {
            bench.host.evaluate(&pod);
        }
        show(what, (0..ROUNDS).map(|_| time(|| drop(bench.host.evaluate(&pod)))).collect());
    }
    let bench = Bench::with(&builtins());
    bench.load("gate", GATE, aether_test_guests::ROGUE_TAINT).expect("a fourth behaviour loads");
    let takeover = |generation| {
        let took = time(|| drop(bench.host.take_over(generation)));
        bench.host.lose();
        took
    };
    show("takeover: four modules enabled", (1..=TAKEOVERS).map(|round| takeover(round as u64)).collect());
}

const GATE: &str = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"x\"] } }\nsettings = { act = \"\", key = \"x\" }";

fn large() -> Pod {
    let mut pod = pod("web-6d4cf56db6-abcde");
    pod.annotations =
        (0..40).map(|i| (format!("note-{i}"), "some value of forty bytes or thereabouts".into())).collect();
    pod
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
    println!("{what:<36} p50 {:>10.1?}  p99 {:>10.1?}", at(50), at(99));
}
