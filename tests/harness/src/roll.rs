//! One roll, as a `DaemonSet` with surge does it: a new agent beside the old one, SIGTERM to the old one when the new one is
//! ready; and the same under load, with its figures.

use std::time::{Duration, Instant};

use aether_domain::paths;

use crate::agents::{AGENT_LIMIT, Agent, Start};
use crate::audit::Findings;
use crate::load::{Load, Record};
use crate::node::Node;
use crate::probe::Prober;
use crate::process::Signal;

/// How many clients of the runtime make the load of a roll.
pub const CLIENTS: u32 = 2;
/// How often the plugin alone makes a pair of ADD and DEL.
pub const PACE: Duration = Duration::from_millis(50);

/// When a roll's steps came.
#[derive(Debug, Clone, Copy)]
pub struct Rolled {
    /// The new agent was started.
    pub began: Instant,
    /// The new one was ready, and the old one got SIGTERM.
    pub told: Instant,
    /// The old one was gone.
    pub ended: Instant,
    /// The new one had said that it owns the node.
    pub owns: Instant,
}

impl Rolled {
    /// From the new agent's start to its being ready.
    pub fn built(&self) -> Duration {
        self.told.duration_since(self.began)
    }

    /// From SIGTERM to the old agent's end.
    pub fn ended(&self) -> Duration {
        self.ended.duration_since(self.told)
    }

    /// From SIGTERM to the new owner.
    pub fn took(&self) -> Duration {
        self.owns.duration_since(self.told)
    }
}

/// What one roll under load came to.
#[derive(Debug)]
pub struct Figures {
    /// The roll's moments.
    pub rolled: Rolled,
    /// The longest time for which a prober of the CNI socket got no answer.
    pub gap: Option<Duration>,
    /// The calls.
    pub record: Record,
    /// What the audit found.
    pub findings: Findings,
}

impl Node {
    /// Rolls from `old` to a new agent.
    pub async fn roll(&self, old: &mut Agent, start: &Start) -> anyhow::Result<(Agent, Rolled)> {
        let began = Instant::now();
        let mut new = self.spawn_one(start)?;
        new.stands_by().await?;
        let told = Instant::now();
        old.signal(Signal::TERM);
        old.gone(AGENT_LIMIT)?;
        let ended = Instant::now();
        new.owns().await?;
        Ok((new, Rolled { began, told, ended, owns: Instant::now() }))
    }

    /// The same under load of both kinds, which leaves no pod behind.
    pub async fn roll_under_load(&self, old: &mut Agent, start: &Start) -> anyhow::Result<(Agent, Figures)> {
        let prober = Prober::start(&self.path(paths::CNI_SOCKET_PATH))?;
        let (pods, plugins) = (Load::runtime(self, CLIENTS), Load::plugin(self, PACE)?);
        pods.flows().await?;
        plugins.flows().await?;
        let (new, rolled) = self.roll(old, start).await?;
        pods.flows().await?;
        plugins.flows().await?;
        let gap = prober.stop()?.gap(rolled.told, rolled.owns);
        let mut record = pods.stop().await?;
        record.add(plugins.stop().await?);
        let living = self.living(&record).await?;
        let findings = self.audit_settled(&living).await?;
        self.end_pods(&record).await?;
        Ok((new, Figures { rolled, gap, record, findings }))
    }
}
