//! Rolls under one kind of load: what failed, what was lost, and what a roll costs a call.

use std::time::{Duration, Instant};

use aether_benches::{Report, Samples};
use aether_harness::audit::Findings;
use aether_harness::load::{Call, Kind, Load, Record};
use aether_harness::roll::Rolled;
use aether_harness::{Containerd, Node, Options, Start};
use anyhow::Result;

use crate::{figure, millis};

/// What rolls under a load came to.
#[derive(Debug)]
pub(crate) struct Under {
    rolls: Vec<Rolled>,
    pub(crate) record: Record,
    pub(crate) findings: Findings,
    seconds: f64,
}

/// Rolls a node of its own `rolls` times under the load that `start` starts. Where that load keeps to a `cycle`, the rolls
/// begin all over it: else each would fall into the same part of it, between two calls perhaps.
pub(crate) async fn measure(
    rolls: u32,
    cycle: Duration,
    start: impl AsyncFn(&Node) -> Result<Load>,
) -> Result<Under> {
    let node = Node::start(Options::flannel(Containerd::V2)).await?;
    node.install(&[])?;
    node.loaded(&["flannel", "portmap", "aether-cni"]).await?;
    let mut owner = node.spawn_one(&Start::named("agent-0"))?;
    owner.owns().await?;
    let load = start(&node).await?;
    load.flows().await?;
    let began = Instant::now();
    let mut done = Vec::new();
    for number in 1..=rolls {
        // pause: a part of the cycle, another one for each roll
        tokio::time::sleep(cycle * number / rolls).await;
        let (new, rolled) = node.roll(&mut owner, &Start::named(&format!("agent-{number}"))).await?;
        owner = new;
        done.push(rolled);
        load.flows().await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let record = load.stop().await?;
    let findings = node.audit_settled(&node.living(&record).await?).await?;
    Ok(Under { rolls: done, record, findings, seconds })
}

impl Under {
    /// How many calls were under way at a hand-over.
    pub(crate) fn at_hand_overs(&self) -> usize {
        self.record.at_hand_overs(&self.rolls)
    }

    fn during(&self, call: &Call, from: fn(&Rolled) -> Instant) -> bool {
        self.rolls.iter().any(|roll| call.touches(from(roll), roll.owns))
    }

    /// The figures: `kind` is the call whose latency counts.
    pub(crate) fn add_to(&self, report: &mut Report, load: &str, kind: Kind, name: &str) {
        let calls = self.record.calls.len();
        let mut add = |what: &str, value: f64, unit, goal, samples| {
            report.add(figure(format!("{load}: {what}"), value, unit, goal, samples));
        };
        add("rolls", count(self.rolls.len()), "", None, self.rolls.len());
        add("calls a second", count(calls) / self.seconds, "/s", None, calls);
        add("calls under way at a hand-over", count(self.at_hand_overs()), "", None, calls);
        add("failed calls", count(self.record.failed().len()), "", Some(0.0), calls);
        add("lost records", count(self.findings.lost.len()), "", Some(0.0), self.record.living.len());
        add("ghost records", count(self.findings.ghosts.len()), "", Some(0.0), calls);
        let latency = |wanted: &dyn Fn(&Call) -> bool| {
            let mut samples = Samples::default();
            for call in self.record.calls.iter().filter(|call| call.kind == kind && wanted(call)) {
                samples.add(call.took);
            }
            samples
        };
        for (when, samples) in [
            ("outside of rolls", latency(&|call| !self.during(call, |roll| roll.began))),
            ("inside (from the new agent's start)", latency(&|call| self.during(call, |roll| roll.began))),
            ("at the hand-over (from SIGTERM)", latency(&|call| self.during(call, |roll| roll.told))),
        ] {
            add(&format!("{name} {when}, p50"), samples.median(), "ms", None, samples.len());
            add(&format!("{name} {when}, p99"), samples.percentile(99), "ms", None, samples.len());
        }
        let mut ended = Samples::default();
        for roll in &self.rolls {
            ended.add_millis(millis(roll.ended()));
        }
        add("SIGTERM to the old agent's end, p50", ended.median(), "ms", None, ended.len());
        add("SIGTERM to the old agent's end, p99", ended.percentile(99), "ms", None, ended.len());
    }
}

#[allow(clippy::cast_precision_loss, reason = "some thousands at most")]
fn count(number: usize) -> f64 {
    number as f64
}
