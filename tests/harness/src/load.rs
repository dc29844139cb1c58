//! Constant load on a node, and what became of each call: clients of the runtime that start and end pods in a closed loop,
//! and the plugin alone, an ADD and a DEL every so often.

mod ledger;
mod plugin;
mod runtime;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

use crate::cri::SandboxId;
use crate::node::Node;
use crate::plugin::{Attachment, Plugin};
use crate::wait;
use ledger::Ledger;
pub use ledger::{Call, Kind, Record};

/// What every pod of a load is annotated with, since the node that `up` leaves has a policy that asks for it.
pub(crate) const ANNOTATION: (&str, &str) = ("example.com/team", "load");
/// Every so many pods one is left alive, so that there is something to lose.
const KEEP: u32 = 10;
/// For how long a client tries to be rid of a pod, as a kubelet does.
const RID_LIMIT: Duration = Duration::from_secs(60);
/// The pause between two attempts at that.
const RID_PAUSE: Duration = Duration::from_millis(20);

/// Within which a load must make some calls.
const FLOW_LIMIT: Duration = Duration::from_secs(60);
/// How many calls show that a load works.
const SOME: usize = 8;

/// Load at work. Dropping it abandons it.
#[derive(Debug)]
pub struct Load {
    ledger: Arc<Ledger>,
    stop: Arc<AtomicBool>,
    clients: JoinSet<anyhow::Result<()>>,
}

impl Load {
    /// Starts `clients` clients of the node's runtime, each of which runs, stops and removes pods without a pause.
    pub fn runtime(node: &Node, clients: u32) -> Self {
        let mut load = Self::idle();
        for client in 0..clients {
            let client = runtime::Client::new(node.cri(), client, Arc::clone(&load.ledger));
            load.clients.spawn(client.run(Arc::clone(&load.stop)));
        }
        load
    }

    /// Runs the plugin: every `every` an ADD and, when that has ended, its DEL.
    pub fn plugin(node: &Node, every: Duration) -> anyhow::Result<Self> {
        let mut load = Self::idle();
        let pace = plugin::Pace::new(node, every, Arc::clone(&load.ledger))?;
        load.clients.spawn(pace.run(Arc::clone(&load.stop)));
        Ok(load)
    }

    fn idle() -> Self {
        Self { ledger: Arc::default(), stop: Arc::default(), clients: JoinSet::new() }
    }

    /// Waits until some more calls have ended well.
    pub async fn flows(&self) -> anyhow::Result<()> {
        let before = self.ledger.well();
        wait::until("calls that succeed", FLOW_LIMIT, async || {
            let more = self.ledger.well() - before;
            ensure!(more >= SOME, "only {more}");
            Ok(())
        })
        .await
        .with_context(|| format!("the last failure: {:?}", self.so_far().failed().last()))
    }

    /// What has happened so far.
    pub fn so_far(&self) -> Record {
        self.ledger.record()
    }

    /// Lets every client finish what it is at, and tells what happened.
    pub async fn stop(mut self) -> anyhow::Result<Record> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.context("a client panicked")?.context("a client of the load")?;
        }
        Ok(self.ledger.record())
    }
}

impl Node {
    /// The pods that live after a load: those of the load, and all others that the runtime runs.
    pub async fn living(&self, record: &Record) -> anyhow::Result<BTreeSet<String>> {
        let sandboxes = self.cri().list().await.context("list the sandboxes")?;
        let ready = sandboxes.into_iter().filter(crate::cri::PodSandbox::is_ready).map(|sandbox| sandbox.id);
        Ok(record.living.iter().cloned().chain(ready).collect())
    }

    /// Ends the pods that a load left alive.
    pub async fn end_pods(&self, record: &Record) -> anyhow::Result<()> {
        let cri = self.cri();
        let of_runtime: BTreeSet<_> =
            cri.list().await.context("list the sandboxes")?.into_iter().map(|sandbox| sandbox.id).collect();
        let plugin = Plugin::of(self)?;
        for container in &record.living {
            if of_runtime.contains(container) {
                let id = SandboxId(container.clone());
                cri.stop_and_remove(&id).await.with_context(|| format!("end {container}"))?;
            } else {
                let to =
                    Attachment { container: container.clone(), pod: container.clone(), netns: String::new() };
                let output = plugin.call("DEL", &to)?;
                ensure!(output.status.success(), "{container}: {}", String::from_utf8_lossy(&output.stdout));
            }
        }
        Plugin::forget(self)
    }
}
