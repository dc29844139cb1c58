//! Constant load on a node, and what became of each call: clients of the runtime that start and end pods in a closed loop,
//! and the plugin alone, an ADD and a DEL every so often.

mod ledger;
mod plugin;
mod runtime;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinSet;

use crate::node::Node;
use ledger::Ledger;
pub use ledger::{Call, Kind, Record};

/// Every so many pods one is left alive, so that there is something to lose.
const KEEP: u32 = 10;
/// For how long a client tries to be rid of a pod, as a kubelet does.
const RID_LIMIT: Duration = Duration::from_secs(60);
/// The pause between two attempts at that.
const RID_PAUSE: Duration = Duration::from_millis(20);

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

    /// How many calls have ended so far.
    pub fn calls(&self) -> usize {
        self.ledger.calls()
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
