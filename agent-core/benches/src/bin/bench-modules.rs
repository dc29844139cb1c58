//! P9: what modules cost. The host as the agent has it, with real components under real limits; the node is in memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aether_benches::{Figure, Progress, Report, Samples};
use aether_harness::tools;
use aether_module_host::Host;
use aether_module_host::pod::Pod;
use aether_module_host::verdict::{By, Verdict};
use aether_test_guests::{Bench, REQUIRE_ANNOTATION, builtins, pod};
use anyhow::{Result, anyhow, bail, ensure};
use clap::Parser;

/// The goals: a warm call and a fresh instance's in microseconds, a takeover in milliseconds.
const WARM_US: f64 = 25.0;
const FRESH_US: f64 = 100.0;
const TAKEOVER_MS: f64 = 1.0;
/// How many evaluate while versions are swapped.
const CALLERS: usize = 2;

/// Measures modules.
#[derive(Debug, Parser)]
struct Args {
    /// How many calls of each kind.
    #[arg(long, default_value_t = 5000)]
    calls: usize,
    /// How many takeovers.
    #[arg(long, default_value_t = 500)]
    takeovers: u64,
    /// How many swaps of a version under load.
    #[arg(long, default_value_t = 300)]
    swaps: usize,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::default();
    for (what, instances, goal) in
        [("warm evaluate", "warm", WARM_US), ("fresh instance + init + evaluate", "per-call", FRESH_US)]
    {
        let samples = evaluates(instances, args.calls)?;
        let what = format!("{what} of a pod with {} bytes of text", text(&large()));
        let mut add = |what, value, goal| {
            report.add(Figure::new("P9", what, value * 1000.0, "us", goal).over(samples.len()));
        };
        add(format!("{what}: p50"), samples.median(), Some(goal));
        add(format!("{what}: p99"), samples.percentile(99), None);
    }
    takeovers(args.takeovers, &mut report)?;
    swaps(args.swaps, &mut report)?;
    report.write(&tools::workspace().join("target/bench"), "modules")
}

/// A policy that wants an annotation which every pod here lacks, so that its denial names its version.
fn policy(bench: &Bench, instances: &str, wants: &str) -> Result<()> {
    let manifest = format!(
        "world = \"pod-policy\"\ninstances = {instances:?}\nsettings = {{ annotations = {{ {wants:?} = \"\" }} }}"
    );
    bench
        .load("policy", &manifest, REQUIRE_ANNOTATION)
        .map_err(|why| anyhow!("the policy is not loaded: {why}"))
}

fn evaluates(instances: &str, calls: usize) -> Result<Samples> {
    let (bench, pod) = (Bench::new(), large());
    policy(&bench, instances, "missing-a")?;
    bench.host.take_over(1);
    let mut samples = Samples::default();
    let mut progress = Progress::new(format!("calls, instances = {instances:?}"), calls);
    for round in 0..calls + calls / 10 {
        let began = Instant::now();
        let evaluated = bench.host.evaluate(&pod);
        let took = began.elapsed();
        ensure!(!evaluated.votes.is_empty(), "no policy was asked");
        if denied(&bench.host, &pod)? != "missing-a" {
            bail!("another policy answered");
        }
        // The first ones warm up.
        if round >= calls / 10 {
            samples.add(took);
            progress.at(samples.len());
        }
    }
    Ok(samples)
}

/// The three built-in behaviours and a policy beside them.
fn takeovers(count: u64, report: &mut Report) -> Result<()> {
    let bench = Bench::with(&builtins());
    policy(&bench, "warm", "missing-a")?;
    ensure!(bench.host.status().len() == 4, "{} modules instead of four", bench.host.status().len());
    let mut samples = Samples::default();
    for generation in 1..=count {
        let began = Instant::now();
        let enabled = bench.host.take_over(generation);
        samples.add(began.elapsed());
        ensure!(enabled.len() == 3, "{enabled:?}");
        for status in bench.host.status() {
            ensure!(status.state == "enabled", "{} is {}: {}", status.name, status.state, status.last_error);
        }
        bench.host.lose();
    }
    let mut add = |what: &str, value, goal| {
        report.add(
            Figure::new("P9", format!("takeover, four modules enabled: {what}"), value, "ms", goal)
                .over(samples.len()),
        );
    };
    add("p50", samples.median(), Some(TAKEOVER_MS));
    add("p99", samples.percentile(99), None);
    Ok(())
}

/// Versions swapped while others call; every answer must be one version's own.
fn swaps(count: usize, report: &mut Report) -> Result<()> {
    let (bench, pod) = (Bench::new(), large());
    policy(&bench, "warm", "missing-a")?;
    bench.host.take_over(1);
    let (stop, calls, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut samples = Samples::default();
    let swapped = std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let right = denied(&bench.host, &pod)
                        .is_ok_and(|by| ["missing-a", "missing-b"].contains(&by.as_str()));
                    failed.fetch_add(usize::from(!right), Ordering::AcqRel);
                    calls.fetch_add(1, Ordering::AcqRel);
                }
            });
        }
        let swapped = swap(&bench, &pod, count, &calls, &mut samples);
        stop.store(true, Ordering::Release);
        swapped
    });
    swapped?;
    let calls = calls.load(Ordering::Acquire);
    let failed = u32::try_from(failed.load(Ordering::Acquire))?;
    let what = format!("failed calls while {count} versions were swapped");
    report.add(Figure::new("P9", what, f64::from(failed), "calls", Some(0.0)).over(calls));
    let mut add = |what: &str, value| report.add(Figure::new("P9", what, value, "ms", None).over(count));
    add("a version's swap, from its files to its first answer: p50", samples.median());
    add("a version's swap, from its files to its first answer: p99", samples.percentile(99));
    Ok(())
}

fn swap(bench: &Bench, pod: &Pod, count: usize, calls: &AtomicUsize, samples: &mut Samples) -> Result<()> {
    let mut progress = Progress::new("swaps under load", count);
    for round in 0..count {
        let wants = if round % 2 == 0 { "missing-b" } else { "missing-a" };
        let began = Instant::now();
        policy(bench, "warm", wants)?;
        let by = denied(&bench.host, pod)?;
        samples.add(began.elapsed());
        ensure!(by == wants, "after the swap to {wants} the policy with {by} answers");
        // The load goes on between two swaps.
        let seen = calls.load(Ordering::Acquire);
        while calls.load(Ordering::Acquire) < seen + CALLERS {
            std::thread::park_timeout(Duration::from_micros(100));
        }
        progress.at(round);
    }
    Ok(())
}

/// Which annotation the policy says is missing; an error where the policy itself did not answer.
fn denied(host: &Host, pod: &Pod) -> Result<String> {
    let evaluated = host.evaluate(pod);
    let [vote] = evaluated.votes.as_slice() else { bail!("{} policies answered", evaluated.votes.len()) };
    match (&vote.by, &vote.verdict) {
        (By::Module, Verdict::Deny(denial)) => {
            let known = ["missing-a", "missing-b"].into_iter().find(|wants| denial.message.contains(wants));
            known.map(str::to_owned).ok_or_else(|| anyhow!("the denial says {:?}", denial.message))
        }
        other => bail!("the policy did not answer: {other:?}"),
    }
}

/// Some 2 KB in some 95 strings.
fn large() -> Pod {
    let mut pod = pod("web-6d4cf56db6-abcde");
    pod.annotations =
        (0..40).map(|i| (format!("note-{i}"), "some value of forty bytes or thereabouts".into())).collect();
    pod
}

/// How many bytes its strings hold.
fn text(pod: &Pod) -> usize {
    let annotations: usize = pod.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    let addresses: usize = pod.addresses.iter().map(String::len).sum();
    let others =
        [&pod.namespace, &pod.name, &pod.uid, &pod.sandbox_id, &pod.ifname, &pod.netns, &pod.network];
    annotations + addresses + others.into_iter().map(String::len).sum::<usize>()
}
