//! What the tests of several agents on one node share: an owner with load on it, and the audit at the end.

use aether_domain::paths;
use aether_harness::load::{Load, Record};
use aether_harness::roll::{PACE, Rolled};
use aether_harness::{AGENT_LIMIT, Agent, Containerd, Options, Start, wait};
use aether_test_cni::{CHAIN, Rig};
use anyhow::{bail, ensure};

/// A node with an owner, on which other agents come and go.
#[derive(Debug)]
pub struct Stage {
    /// The node.
    pub rig: Rig,
    started: u32,
}

impl Stage {
    /// A node with our entry in its list and no agent. ADDs wait for 30 s, so that only what is lost for good fails.
    pub async fn patient(containerd: Containerd) -> anyhow::Result<Self> {
        Self::with(containerd, &["--add-deadline-seconds", "30"]).await
    }

    /// The same with the plugin's usual deadline.
    pub async fn usual(containerd: Containerd) -> anyhow::Result<Self> {
        Self::with(containerd, &[]).await
    }

    async fn with(containerd: Containerd, install: &[&str]) -> anyhow::Result<Self> {
        let rig = Rig::bare(Options::flannel(containerd)).await?;
        rig.node.install(install)?;
        rig.node.loaded(&CHAIN).await?;
        Ok(Self { rig, started: 0 })
    }

    /// How the next agent is started: with a name that no other has.
    pub fn another(&mut self) -> Start {
        self.started += 1;
        Start::named(&format!("agent-{}", self.started))
    }

    /// Starts an agent that is to own the node at once.
    pub async fn owner(&mut self) -> anyhow::Result<Agent> {
        let start = self.another();
        self.owner_by(&start).await
    }

    /// The same, started so.
    pub async fn owner_by(&mut self, start: &Start) -> anyhow::Result<Agent> {
        let mut owner = self.rig.node.spawn_one(start)?;
        owner.owns().await?;
        Ok(owner)
    }

    /// Waits until the owner has written what it writes by itself: the chain as it first saw it, which comes with the first
    /// look after it took the node.
    pub async fn rests(&self) -> anyhow::Result<()> {
        let chain = self.rig.node.path(paths::STATE_DIR).join(paths::CHAIN);
        wait::until("what the owner keeps of the chain", AGENT_LIMIT, async || {
            ensure!(chain.is_file(), "no {}", chain.display());
            ensure!(self.rig.node.temporary_files(paths::STATE_DIR)?.is_empty(), "it is being written");
            Ok(())
        })
        .await
    }

    /// Starts an agent that is to stand by, and waits until it does.
    pub async fn standby(&mut self) -> anyhow::Result<Agent> {
        let start = self.another();
        self.standby_by(&start).await
    }

    /// The same, started so.
    pub async fn standby_by(&mut self, start: &Start) -> anyhow::Result<Agent> {
        let mut standby = self.rig.node.spawn_one(start)?;
        standby.stands_by().await?;
        Ok(standby)
    }

    /// Starts an agent that is to stand by, and waits until `owner` knows it to be complete and would hand over to it.
    pub async fn chosen(&mut self, owner: &mut Agent) -> anyhow::Result<Agent> {
        let start = self.another();
        let standby = self.standby_by(&start).await?;
        owner.logged(&format!("the standby {} is complete", start.name())).await?;
        Ok(standby)
    }

    /// Of two agents, the one that owns the node and the other, once exactly one of them says that it does.
    pub async fn settled<'a>(
        one: &'a mut Agent,
        two: &'a mut Agent,
    ) -> anyhow::Result<(&'a mut Agent, &'a mut Agent)> {
        let first = wait::until("one owner of two agents", AGENT_LIMIT, async || {
            let roles = (one.role().await?, two.role().await?);
            match (roles.0.as_str(), roles.1.as_str()) {
                ("owner", "standby") => Ok(true),
                ("standby", "owner") => Ok(false),
                _ => bail!("one must own the node: {roles:?}"),
            }
        })
        .await?;
        Ok(if first { (one, two) } else { (two, one) })
    }

    /// Rolls to a new agent; the old one's end must be a good one.
    pub async fn roll(&mut self, old: &mut Agent) -> anyhow::Result<(Agent, Rolled)> {
        let start = self.another();
        let (new, rolled) = self.rig.node.roll(old, &start).await?;
        let code = old.ended(AGENT_LIMIT)?.code();
        ensure!(code == Some(0), "the old agent ended with {code:?}: {}", old.log());
        Ok((new, rolled))
    }

    /// The plugin's load, once it runs.
    pub async fn plugins(&self) -> anyhow::Result<Load> {
        let load = Load::plugin(&self.rig.node, PACE)?;
        load.flows().await?;
        Ok(load)
    }

    /// Load by clients of the runtime, once it runs.
    pub async fn pods(&self, clients: u32) -> anyhow::Result<Load> {
        let load = Load::runtime(&self.rig.node, clients);
        load.flows().await?;
        Ok(load)
    }

    /// Waits until `next` owns the node and is called, and ends the load as [`Stage::all_well`] does.
    pub async fn taken_over_by(&self, next: &mut Agent, load: Load) -> anyhow::Result<Record> {
        next.owns().await?;
        load.flows().await?;
        self.all_well(load).await
    }

    /// Ends the load: nothing may have failed, be lost, left or torn.
    pub async fn all_well(&self, load: Load) -> anyhow::Result<Record> {
        let record = load.stop().await?;
        record.nothing_failed()?;
        self.nothing_lost(&record).await?;
        Ok(record)
    }

    /// Nothing may be lost, left or torn, whatever failed.
    pub async fn nothing_lost(&self, record: &Record) -> anyhow::Result<()> {
        let findings = self.rig.node.audit_settled(&record.living).await?;
        ensure!(findings.is_clean(), "{findings}");
        ensure!(!record.living.is_empty(), "no pod was left alive: there was nothing to lose");
        Ok(())
    }
}
