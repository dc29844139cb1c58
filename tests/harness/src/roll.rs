//! One roll, as a `DaemonSet` with surge does it: a new agent beside the old one, SIGTERM to the old one when the new one is
//! ready.

use std::time::{Duration, Instant};

use crate::agents::{AGENT_LIMIT, Agent, Start};
use crate::node::Node;
use crate::process::Signal;

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
    /// From SIGTERM to the new owner.
    pub fn took(&self) -> Duration {
        self.owns.duration_since(self.told)
    }

    /// From the new agent's start to its being ready.
    pub fn built(&self) -> Duration {
        self.told.duration_since(self.began)
    }
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
}
