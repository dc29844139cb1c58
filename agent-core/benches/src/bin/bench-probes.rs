//! P11: how large the probe is, and what an exec of it costs beside the smallest program in Go.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use aether_benches::{Figure, Report, Samples};
use aether_domain::paths;
use aether_harness::tools;
use anyhow::{Context as _, Result, ensure};
use clap::Parser;

/// Measures the probe.
#[derive(Debug, Parser)]
struct Args {
    /// The probe as it ships.
    #[arg(long)]
    tiny: PathBuf,
    /// The probe with plain static glibc.
    #[arg(long)]
    plain: PathBuf,
    /// The comparison.
    #[arg(long)]
    hello: PathBuf,
    /// How many execs of each.
    #[arg(long, default_value_t = 1000)]
    execs: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::default();
    report.add(size("agent-ready as it ships", &args.tiny, Some(100.0))?);
    report.add(size("agent-ready with plain static glibc", &args.plain, Some(1200.0))?);
    report.add(size("hello in Go", &args.hello, None)?);
    execs(&args, &mut report)?;
    report.write(&tools::workspace().join("target/bench"), "probes")
}

fn size(what: &str, binary: &Path, at_most: Option<f64>) -> Result<Figure> {
    let bytes = std::fs::metadata(binary).with_context(|| format!("look at {}", binary.display()))?.len();
    #[allow(clippy::cast_precision_loss, reason = "a binary is smaller than 2^52 bytes")]
    let value = bytes as f64 / 1e3;
    Ok(Figure { goal: "P11", what: format!("size of {what}"), value, unit: "KB", at_most, samples: 1 })
}

/// Execs of all three in turn. The probes are answered; the comparison has nothing to ask.
fn execs(args: &Args, report: &mut Report) -> Result<()> {
    let place = tempfile::tempdir()?;
    let socket = place.path().join(paths::HEALTH_SOCKET);
    let listener = UnixListener::bind(&socket).with_context(|| format!("bind {}", socket.display()))?;
    // It ends with the process.
    std::thread::spawn(move || answer(&listener));
    let (mut tiny, mut plain, mut hello) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..args.execs {
        tiny.add(timed(Command::new(&args.tiny).arg("--socket").arg(&socket))?);
        hello.add(timed(&mut Command::new(&args.hello))?);
        plain.add(timed(Command::new(&args.plain).arg("--socket").arg(&socket))?);
    }
    for (what, samples) in
        [("agent-ready as it ships", &tiny), ("agent-ready, plain", &plain), ("hello in Go", &hello)]
    {
        report.add(exec(&format!("exec of {what}, median"), samples.median(), "ms", None, samples));
    }
    let ratio = tiny.median() / hello.median();
    report.add(exec("exec of agent-ready, ratio to hello in Go", ratio, "x", Some(0.5), &tiny));
    Ok(())
}

fn exec(what: &str, value: f64, unit: &'static str, at_most: Option<f64>, samples: &Samples) -> Figure {
    Figure { goal: "P11", what: what.to_owned(), value, unit, at_most, samples: samples.len() }
}

/// Says "ready" to everybody, until accepting fails.
fn answer(listener: &UnixListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        // One whose caller has gone is none of the figures: its exec fails.
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nready\n");
    }
}

fn timed(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("run {command:?}"))?;
    let took = begin.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(took)
}
