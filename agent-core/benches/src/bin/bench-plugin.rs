//! P6 and P7: what our link costs a pod, beside a chain without it; what an exec of it costs, beside portmap's; how large it
//! is.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aether_benches::local::Local;
use aether_benches::{Figure, Progress, Report, Samples, exec, memory};
use aether_domain::paths;
use aether_harness::cri::{Cri, Pod};
use aether_harness::{Containerd, Node, Options, tools, wait};
use anyhow::{Result, ensure};
use clap::Parser;

/// Debian's portmap, the comparison: a chained plugin too, which without ports only hands its input on.
const PORTMAP: &str = "/usr/lib/cni/portmap";

/// Measures the plugin.
#[derive(Debug, Parser)]
struct Args {
    /// How many pairs of pods, with and without our link.
    #[arg(long, default_value_t = 100)]
    pairs: u32,
    /// How many execs of each plugin.
    #[arg(long, default_value_t = 500)]
    execs: usize,
    /// Also beside Cilium's and Istio's plugins.
    #[arg(long)]
    peers: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::default();
    let plugin = tools::program_under_test(paths::PLUGIN)?;
    size(&plugin, &mut report)?;

    let mut peers = vec![Peer::portmap()];
    if args.peers {
        peers.extend(Peer::large()?);
    }
    let local = Local::start(|_| Ok(()))?;
    execs(&plugin, &peers, &local, "VERSION", args.execs, &mut report)?;
    // The large ones want a cluster for an ADD.
    peers.truncate(1);
    execs(&plugin, &peers, &local, "ADD", args.execs, &mut report)?;
    local.stop()?;
    peak(&plugin, &local, &mut report)?;
    drop(local);

    let with = Node::start(Options::flannel(Containerd::V2)).await?;
    with.install(&[])?;
    let _agent = with.start_agent().await?;

    let without = Node::start(Options::flannel(Containerd::V2)).await?;
    pods(&with.cri(), &without.cri(), args.pairs, &mut report).await?;
    report.write(&tools::workspace().join("target/bench"), "plugin")
}

fn size(plugin: &Path, report: &mut Report) -> Result<()> {
    report.add(Figure::new("P7", "binary, static and stripped", memory::file(plugin)?, "MB", Some(2.0)));
    Ok(())
}

/// Peak RSS of an ADD that waits for a stopped agent: by then everything that a call needs is in memory.
fn peak(plugin: &Path, agent: &Local, report: &mut Report) -> Result<()> {
    let mut child = exec::call(plugin, "ADD", agent, "0123")?;
    let mut highest = 0.0;
    let mut same = 0;
    let waited =
        wait::until_blocking("a settled peak of the plugin's memory", Duration::from_secs(4), || {
            let peak = memory::megabytes(child.id(), "VmHWM")?;
            same = if peak > 0.0 && peak <= highest { same + 1 } else { 0 };
            highest = peak;
            ensure!(same >= 5, "{highest} MB, still changing");
            Ok(())
        });
    let _ = child.kill();
    let _ = child.wait();
    waited?;
    report.add(Figure::new("P7", "peak RSS of an ADD", highest, "MB", Some(3.0)));
    Ok(())
}

/// A plugin beside ours.
struct Peer {
    name: &'static str,
    program: PathBuf,
    /// The goal for ours, as a share of its time.
    goal: f64,
}

impl Peer {
    fn portmap() -> Self {
        Self { name: "portmap", program: PORTMAP.into(), goal: 0.5 }
    }

    /// Cilium's and Istio's plugins, as `cargo xtask tools --peers` builds them.
    fn large() -> Result<[Self; 2]> {
        let peer = |name, tool: &str, goal| {
            let program = tools::built().join(tool).join(name);
            ensure!(
                program.is_file(),
                "{} is not there; build it with: cargo xtask tools --peers",
                program.display()
            );
            Ok(Self { name, program, goal })
        };
        Ok([peer("cilium-cni", "cilium", 0.3)?, peer("istio-cni", "istio", 0.1)?])
    }
}

/// Execs of all plugins in turn.
fn execs(
    plugin: &Path,
    peers: &[Peer],
    agent: &Local,
    command: &str,
    count: usize,
    report: &mut Report,
) -> Result<()> {
    let mut ours = Samples::default();
    let mut theirs = vec![Samples::default(); peers.len()];
    let mut progress = Progress::new(format!("{command} execs"), count);
    for round in 0..count {
        let id = format!("{command}{round}");
        ours.add(exec::timed(plugin, command, agent, &id)?);
        for (peer, samples) in peers.iter().zip(&mut theirs) {
            samples.add(exec::timed(&peer.program, command, agent, &id)?);
        }
        progress.at(round);
    }
    let rpc = if command == "ADD" { " with its RPC and durable record" } else { "" };
    let mut add = |what: String, value, unit, goal| {
        report.add(Figure::new("P6", what, value, unit, goal).over(count));
    };
    add(format!("{command} exec{rpc}, median"), ours.median(), "ms", None);
    add(format!("{command} exec{rpc}, p99"), ours.percentile(99), "ms", None);
    for (peer, samples) in peers.iter().zip(&theirs) {
        let name = peer.name;
        add(format!("{command} exec of {name}, median"), samples.median(), "ms", None);
        // The goal is for the exec alone; an ADD waits for its record to be on the disk besides.
        let goal = (command == "VERSION").then_some(peer.goal);
        add(format!("{command} exec, ratio to {name}'s"), ours.median() / samples.median(), "x", goal);
    }
    Ok(())
}

/// Pods in turn on a node with our link and on one without.
async fn pods(with: &Cri, without: &Cri, pairs: u32, report: &mut Report) -> Result<()> {
    let (mut ours, mut theirs, mut added) = (Samples::default(), Samples::default(), Samples::default());
    let mut progress = Progress::new("pods with our link and without, in turn", usize::try_from(pairs)?);
    for pair in 0..pairs {
        let pod = Pod::named("bench", &format!("pod-{pair}"));
        let (a, b) = (pod_time(with, &pod).await?, pod_time(without, &pod).await?);
        ours.add(a);
        theirs.add(b);
        added.add_millis((a.as_secs_f64() - b.as_secs_f64()) * 1000.0);
        progress.at(ours.len());
    }
    let n = ours.len();
    let mut add = |what, value, goal| report.add(Figure::new("P6", what, value, "ms", goal).over(n));
    add("RunPodSandbox with our link, median", ours.median(), None);
    add("RunPodSandbox without, median", theirs.median(), None);
    add("RunPodSandbox, median of the pairs' differences", added.median(), Some(3.0));
    Ok(())
}

async fn pod_time(cri: &Cri, pod: &Pod) -> Result<Duration> {
    let begin = Instant::now();
    let id = cri.run(pod).await?;
    let took = begin.elapsed();
    cri.stop_and_remove(&id).await?;
    Ok(took)
}
