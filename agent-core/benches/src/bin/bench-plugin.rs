//! P6 and P7: what our link costs a pod, beside a chain without it; what an exec of it costs, beside portmap's; how large it
//! is.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aether_benches::{Figure, Report, Samples};
use aether_domain::paths;
use aether_harness::cri::{Cri, Pod};
use aether_harness::{Containerd, Node, Options, Signal, tools, wait};
use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use rustix::process::{Pid, kill_process};

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
    execs: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::default();
    let plugin = tools::program_under_test(paths::PLUGIN)?;
    size(&plugin, &mut report)?;

    let local = Local::start()?;
    execs(&plugin, &local, args.execs, &mut report)?;
    local.signal(Signal::STOP)?;
    memory(&plugin, &local, &mut report)?;
    drop(local);

    let with = Node::start(Options::flannel(Containerd::V2)).await?;
    with.install(&[])?;
    let _agent = with.start_agent().await?;

    let without = Node::start(Options::flannel(Containerd::V2)).await?;
    pods(&with.cri(), &without.cri(), args.pairs, &mut report).await?;
    report.write(&tools::workspace().join("target/bench"), "plugin")
}

/// An agent beside the bench, in a directory of its own: an exec that first entered a node's namespaces would measure that.
struct Local {
    dir: tempfile::TempDir,
    agent: Child,
}

impl Local {
    fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut agent = Command::new(tools::program_under_test("aether-agent")?);
        for (flag, name) in [
            ("--run-dir", "run"),
            ("--state-dir", "state"),
            ("--cni-conf-dir", "net.d"),
            ("--local-dir", "local"),
        ] {
            agent.arg(flag).arg(dir.path().join(name));
        }
        let agent = agent.stderr(Stdio::null()).spawn().context("run the agent")?;
        let local = Self { dir, agent };
        let socket = local.path("run").join(paths::CNI_SOCKET);
        wait::until_blocking("the agent's socket", Duration::from_secs(20), || {
            Ok(std::os::unix::net::UnixStream::connect(&socket).map(|_| ())?)
        })?;
        Ok(local)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.agent.id()).ok().and_then(Pid::from_raw).context("the agent's pid")?;
        Ok(kill_process(pid, signal)?)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn size(plugin: &Path, report: &mut Report) -> Result<()> {
    let bytes = std::fs::metadata(plugin).with_context(|| format!("look at {}", plugin.display()))?.len();
    #[allow(clippy::cast_precision_loss, reason = "a binary is smaller than 2^52 bytes")]
    let megabytes = bytes as f64 / 1e6;
    report.add(figure("P7", "binary, static and stripped", megabytes, "MB", Some(2.0), 1));
    Ok(())
}

/// Peak RSS of an ADD that waits for a stopped agent: by then everything that a call needs is in memory.
fn memory(plugin: &Path, node: &Local, report: &mut Report) -> Result<()> {
    let mut child = call(plugin, "ADD", node, "0123")?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let mut highest = 0u64;
    let mut same = 0;
    let waited =
        wait::until_blocking("a settled peak of the plugin's memory", Duration::from_secs(4), || {
            let text = std::fs::read_to_string(&status)?;
            let peak: u64 = text
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok())
                .context("no VmHWM")?;
            same = if peak > 0 && peak == highest { same + 1 } else { 0 };
            highest = peak;
            ensure!(same >= 5, "{highest} KB, still changing");
            Ok(())
        });
    let _ = child.kill();
    let _ = child.wait();
    waited?;
    #[allow(clippy::cast_precision_loss, reason = "kilobytes of one process")]
    let megabytes = highest as f64 * 1024.0 / 1e6;
    report.add(figure("P7", "peak RSS of an ADD", megabytes, "MB", Some(3.0), 1));
    Ok(())
}

/// Execs of both plugins in turn.
fn execs(plugin: &Path, node: &Local, count: u32, report: &mut Report) -> Result<()> {
    for command in ["VERSION", "ADD"] {
        let (mut ours, mut theirs) = (Samples::default(), Samples::default());
        for round in 0..count {
            let id = format!("{command}{round}");
            ours.add(timed(Path::new(plugin), command, node, &id)?);
            theirs.add(timed(Path::new(PORTMAP), command, node, &id)?);
        }
        let rpc = if command == "ADD" { " with its RPC and durable record" } else { "" };
        let n = ours.len();
        report.add(figure("P6", &format!("{command} exec{rpc}, median"), ours.median(), "ms", None, n));
        report.add(figure("P6", &format!("{command} exec{rpc}, p99"), ours.percentile(99), "ms", None, n));
        report.add(figure(
            "P6",
            &format!("{command} exec of portmap, median"),
            theirs.median(),
            "ms",
            None,
            n,
        ));
        let ratio = ours.median() / theirs.median();
        // The goal is for the exec alone; an ADD waits for its record to be on the disk besides.
        let goal = (command == "VERSION").then_some(0.5);
        report.add(figure("P6", &format!("{command} exec, ratio to portmap's"), ratio, "x", goal, n));
    }
    Ok(())
}

fn timed(plugin: &Path, command: &str, node: &Local, id: &str) -> Result<Duration> {
    let begin = Instant::now();
    let output = call(plugin, command, node, id)?.wait_with_output()?;
    let took = begin.elapsed();
    ensure!(
        output.status.success() && !output.stdout.is_empty(),
        "{} {command} ended with {}: {}",
        plugin.display(),
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    Ok(took)
}

/// One exec as libcni does it, standard input written and closed.
fn call(plugin: &Path, command: &str, node: &Local, id: &str) -> Result<Child> {
    let config = serde_json::json!({
        "cniVersion": "1.0.0", "name": "cbr0", "type": "aether-cni",
        "agentSocket": node.path("run").join(paths::CNI_SOCKET), "stateDir": node.path("state"),
        "prevResult": {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": "eth0", "sandbox": "/proc/self/ns/net"}],
            "ips": [{"address": "10.244.1.2/24", "gateway": "10.244.1.1", "interface": 0}],
        },
    });
    let mut exec = Command::new(plugin);
    exec.arg0(plugin)
        .env_clear()
        .env("CNI_COMMAND", command)
        .env("CNI_CONTAINERID", id)
        .env("CNI_IFNAME", "eth0")
        .env("CNI_NETNS", "/proc/self/ns/net")
        .env("CNI_PATH", paths::CNI_BIN_DIR)
        .env("CNI_ARGS", format!("K8S_POD_NAMESPACE=bench;K8S_POD_NAME={id}"));
    exec.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = exec.spawn().with_context(|| format!("run {}", plugin.display()))?;
    let mut stdin = child.stdin.take().context("the child's standard input")?;
    stdin.write_all(config.to_string().as_bytes())?;
    Ok(child)
}

/// Pods in turn on a node with our link and on one without.
async fn pods(with: &Cri, without: &Cri, pairs: u32, report: &mut Report) -> Result<()> {
    let (mut ours, mut theirs, mut added) = (Samples::default(), Samples::default(), Samples::default());
    for pair in 0..pairs {
        let pod = Pod::named("bench", &format!("pod-{pair}"));
        let (a, b) = (pod_time(with, &pod).await?, pod_time(without, &pod).await?);
        ours.add(a);
        theirs.add(b);
        added.add_millis((a.as_secs_f64() - b.as_secs_f64()) * 1000.0);
    }
    let n = ours.len();
    report.add(figure("P6", "RunPodSandbox with our link, median", ours.median(), "ms", None, n));
    report.add(figure("P6", "RunPodSandbox without, median", theirs.median(), "ms", None, n));
    report.add(figure(
        "P6",
        "RunPodSandbox, median of the pairs' differences",
        added.median(),
        "ms",
        Some(3.0),
        n,
    ));
    Ok(())
}

async fn pod_time(cri: &Cri, pod: &Pod) -> Result<Duration> {
    let begin = Instant::now();
    let id = cri.run(pod).await?;
    let took = begin.elapsed();
    cri.stop_and_remove(&id).await?;
    Ok(took)
}

fn figure(
    goal: &'static str,
    what: &str,
    value: f64,
    unit: &'static str,
    at_most: Option<f64>,
    samples: usize,
) -> Figure {
    Figure { goal, what: what.to_owned(), value, unit, at_most, samples }
}
