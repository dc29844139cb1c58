//! P8: how long our entry is away when somebody strips it. A real directory, a real containerd, the real agent; the time runs
//! from the moment when the foreign writer has closed or renamed, to our rename, and to the runtime's load of it.

use std::time::Duration;

use aether_benches::strip::{Round, Stripped, Writer};
use aether_benches::{Figure, Progress, Report, Samples, istio};
use aether_domain::paths::PLUGIN;
use aether_harness::{Containerd, Node, Options, tools};
use anyhow::Result;
use clap::Parser;
use tokio::time::{Instant, sleep_until};

/// The goals for strip to repaired, in milliseconds, and as a share of Istio's median.
const GOALS: (f64, f64) = (10.0, 50.0);
const SHARE: f64 = 0.1;
/// The pause after each repair: strips that follow each other faster are a fight, which is answered ever later (C06).
const PEACE: Duration = Duration::from_millis(1200);

/// Measures repairs.
#[derive(Debug, Parser)]
struct Args {
    /// How many strips by each kind of writer.
    #[arg(long, default_value_t = 100)]
    strips: usize,
    /// Also with Istio's install-cni, on a node like ours, in turn with ours.
    #[arg(long)]
    peers: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let node = Node::start(Options::flannel(Containerd::V2)).await?;
    node.install(&[])?;
    let _agent = node.start_agent().await?;
    let ours = Stripped::watch(&node, PLUGIN)?;

    let beside = if args.peers { Some(Node::start(Options::flannel(Containerd::V2)).await?) } else { None };
    let mut _istio = None;
    let mut theirs = None;
    if let Some(node) = &beside {
        _istio = Some(istio::start(node).await?);
        theirs = Some(Stripped::watch(node, istio::PLUGIN)?);
    }

    let mut report = Report::default();
    let mut round = 0;
    for writer in Writer::ALL {
        let (mut us, mut them) = (Times::default(), Times::default());
        let mut progress = Progress::new(format!("strips, {}", writer.name()), args.strips);
        for done in 0..args.strips {
            round += 1;
            us.add(ours.round(writer, round).await?);
            let peace = Instant::now() + PEACE;
            if let Some(theirs) = &theirs {
                them.add(theirs.round(writer, round).await?);
            }
            // pause: see PEACE
            sleep_until(peace).await;
            progress.at(done);
        }
        us.tell("", writer, Some(GOALS), &mut report);
        if theirs.is_some() {
            them.tell("Istio, ", writer, None, &mut report);
            let share = us.repaired.median() / them.repaired.median();
            let what = format!("strip to repaired, {}: ratio to Istio's p50", writer.name());
            report.add(Figure::new("P8", what, share, "x", Some(SHARE)).over(args.strips));
        }
    }
    report.write(&tools::workspace().join("target/bench"), "strip")
}

/// The rounds of one agent with one writer.
#[derive(Debug, Default)]
struct Times {
    repaired: Samples,
    loaded: Samples,
}

impl Times {
    fn add(&mut self, round: Round) {
        self.repaired.add(round.repaired);
        self.loaded.add(round.loaded);
    }

    fn tell(&self, whose: &str, writer: Writer, goals: Option<(f64, f64)>, report: &mut Report) {
        let mut add = |what: &str, value, goal| {
            let what = format!("{whose}strip to {what}");
            report.add(Figure::new("P8", what, value, "ms", goal).over(self.repaired.len()));
        };
        let name = writer.name();
        add(&format!("repaired, {name}: p50"), self.repaired.median(), goals.map(|(p50, _)| p50));
        add(&format!("repaired, {name}: p99"), self.repaired.percentile(99), goals.map(|(_, p99)| p99));
        add(&format!("loaded by containerd, {name}: p50"), self.loaded.median(), None);
        add(&format!("loaded by containerd, {name}: p99"), self.loaded.percentile(99), None);
    }
}
