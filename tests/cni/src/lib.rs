//! What the tests against a real containerd share: a node with our chain on it, and the questions they ask of it.

use std::collections::BTreeSet;
use std::time::Duration;

use aether_domain::paths;
use aether_domain::record::Record;
use aether_harness::cri::{Cri, Pod, SandboxId};
use aether_harness::{Agent, Containerd, Node, Options, Residue, wait};
use anyhow::{Context as _, ensure};

/// Within which what is to come must come: ten times and more of what any of it takes.
pub const SOON: Duration = Duration::from_secs(20);

/// The chain of flannel's list with our entry.
pub const CHAIN: [&str; 3] = ["flannel", "portmap", paths::PLUGIN];
/// The chain of the bridge list with our entry.
pub const BRIDGE_CHAIN: [&str; 3] = ["bridge", "portmap", paths::PLUGIN];

/// What makes an agent leave list and plugin as they are (C09).
pub const WITHOUT_REPAIR: &str = "--cni-conflist-reassert=false";

/// A node with a client of its runtime.
#[derive(Debug)]
pub struct Rig {
    /// The node.
    pub node: Node,
    /// A client of its runtime.
    pub cri: Cri,
}

impl Rig {
    /// A node on which nothing of ours is.
    pub async fn bare(options: Options) -> anyhow::Result<Self> {
        let node = Node::start(options).await?;
        let cri = node.cri();
        Ok(Self { node, cri })
    }

    /// A node with flannel's list and our entry in it, and no agent. `install` are the installer's arguments.
    pub async fn installed(containerd: Containerd, install: &[&str]) -> anyhow::Result<Self> {
        let rig = Self::bare(Options::flannel(containerd)).await?;
        rig.node.install(install)?;
        rig.node.loaded(&CHAIN).await?;
        Ok(rig)
    }

    /// The same with a serving agent.
    pub async fn chained(containerd: Containerd) -> anyhow::Result<(Self, Agent)> {
        let rig = Self::installed(containerd, &[]).await?;
        let agent = rig.node.start_agent().await?;
        Ok((rig, agent))
    }

    /// The same, where the agent leaves the list to itself (C09).
    pub async fn chained_without_repair(containerd: Containerd) -> anyhow::Result<(Self, Agent)> {
        let rig = Self::installed(containerd, &[]).await?;
        let mut agent = rig.node.spawn_agent(&[WITHOUT_REPAIR])?;
        rig.node.serving(&mut agent).await?;
        Ok((rig, agent))
    }

    /// Reboots the node.
    pub async fn reboot(&mut self) -> anyhow::Result<()> {
        self.node.reboot().await?;
        self.cri = self.node.cri();
        Ok(())
    }

    /// Starts a pod that must start.
    pub async fn run(&self, pod: &Pod) -> anyhow::Result<SandboxId> {
        let what = || format!("pod {}/{} could not start", pod.namespace, pod.name);
        self.cri.run(pod).await.with_context(what)
    }

    /// Starts a pod that must not start; what the runtime says of it.
    pub async fn refused(&self, pod: &Pod) -> anyhow::Result<String> {
        match self.cri.run(pod).await {
            Ok(id) => anyhow::bail!("pod {} started as {id}, which it must not", pod.name),
            Err(status) => Ok(status.message().to_owned()),
        }
    }

    /// Stops and removes a pod, which must succeed.
    pub async fn end(&self, id: &SandboxId) -> anyhow::Result<()> {
        self.cri.stop(id).await.with_context(|| format!("{id} could not be stopped"))?;
        self.cri.remove(id).await.with_context(|| format!("{id} could not be removed"))
    }

    /// The record of a sandbox, which must be there.
    pub fn record(&self, id: &SandboxId) -> anyhow::Result<Record> {
        self.node.records()?.remove(&id.0).with_context(|| format!("there is no record of {id}"))
    }

    /// Waits until nothing is left that pods leave.
    pub async fn nothing_left(&self) -> anyhow::Result<()> {
        wait::until("a node with nothing left of pods", SOON, async || {
            let residue = self.node.residue()?;
            ensure!(residue.is_nothing(), "{residue:?}");
            Ok(())
        })
        .await
    }

    /// What is left at this moment.
    pub fn residue(&self) -> anyhow::Result<Residue> {
        self.node.residue()
    }

    /// Waits until the records are exactly the runtime's live sandboxes, and no tombstone is left.
    pub async fn consistent(&self) -> anyhow::Result<()> {
        wait::until("records that equal the live sandboxes", SOON, async || {
            let sandboxes: BTreeSet<_> =
                self.cri.list().await?.into_iter().map(|sandbox| sandbox.id).collect();
            let records: BTreeSet<_> = self.node.records()?.into_keys().collect();
            ensure!(records == sandboxes, "records {records:?}, sandboxes {sandboxes:?}");
            let tombstones = self.node.tombstones()?;
            ensure!(tombstones.is_empty(), "tombstones {tombstones:?}");
            Ok(())
        })
        .await
    }
}
