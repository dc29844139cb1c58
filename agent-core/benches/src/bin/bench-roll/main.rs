//! P5: calls under rolls, of pods by containerd and of the plugin alone; and the gap of the CNI socket that a prober sees
//! while an otherwise idle node is rolled, beside a stand-in that unlinks the path and binds it anew.

mod calls;
mod gap;
mod stand_in;

use std::path::PathBuf;
use std::time::Duration;

use aether_benches::{Figure, Report, Samples};
use aether_harness::load::{Kind, Load};
use aether_harness::roll::{CLIENTS, PACE};
use aether_harness::tools;
use anyhow::{Result, ensure};
use clap::{Parser, Subcommand};

/// The goals for the gap, in milliseconds.
const GAP_GOALS: (f64, f64) = (6.0, 15.0);

/// Measures rolls.
#[derive(Debug, Parser)]
struct Args {
    /// How many rolls under each kind of load.
    #[arg(long, default_value_t = 20)]
    rolls: u32,
    /// How many rolls of an idle node, and of the stand-in.
    #[arg(long, default_value_t = 100)]
    gaps: u32,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// One agent of the comparison, which this bench starts itself.
    #[command(hide = true)]
    StandIn {
        /// The lock.
        #[arg(long)]
        lock: PathBuf,
        /// The socket.
        #[arg(long)]
        socket: PathBuf,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(Part::StandIn { lock, socket }) = &args.part {
        return stand_in::run(lock, socket).await;
    }
    let mut report = Report::default();
    let pods =
        calls::measure(args.rolls, Duration::ZERO, async |node| Ok(Load::runtime(node, CLIENTS))).await?;
    pods.add_to(&mut report, "pods", Kind::Run, "RunPodSandbox");
    let plugin = calls::measure(args.rolls, PACE, async |node| Load::plugin(node, PACE)).await?;
    plugin.add_to(&mut report, "plugin alone", Kind::Add, "ADD");
    let gaps = gap::measure(args.gaps).await?;
    let mut add = |what: &str, samples: &Samples, goals: Option<(f64, f64)>| {
        for (name, value, goal) in [
            ("p50", samples.median(), goals.map(|goals| goals.0)),
            ("p99", samples.percentile(99), goals.map(|goals| goals.1)),
        ] {
            report.add(figure(
                format!("gap of the CNI socket, {what}: {name}"),
                value,
                "ms",
                goal,
                samples.len(),
            ));
        }
    };
    add(&format!("handed over, {} pods known", gap::PODS), &gaps.ours, Some(GAP_GOALS));
    add("unlinked and bound anew (a stand-in)", &gaps.theirs, None);
    add("no roll, the prober alone", &gaps.idle, None);
    report.write(&tools::workspace().join("target/bench"), "roll")?;
    for (what, under) in [("pods", &pods), ("the plugin alone", &plugin)] {
        under.record.nothing_failed()?;
        ensure!(under.findings.is_clean(), "{what}: {}", under.findings);
        ensure!(under.at_hand_overs() > 0, "{what}: no call was under way at a hand-over; try more rolls");
    }
    Ok(())
}

fn figure(what: String, value: f64, unit: &'static str, at_most: Option<f64>, samples: usize) -> Figure {
    Figure { goal: "P5", what, value, unit, at_most, samples }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
