//! The plugin alone, at a steady pace: an ADD and its DEL, whether the ones before have ended or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::ledger::{Call, Kind, Ledger};
use super::{KEEP, RID_LIMIT, RID_PAUSE};
use crate::node::Node;
use crate::plugin::{Attachment, Plugin};

/// Over how many network namespaces the pods are spread.
const NAMESPACES: usize = 8;

/// The pace.
#[derive(Debug)]
pub(super) struct Pace {
    plugin: Plugin,
    namespaces: Vec<String>,
    every: Duration,
    stamp: u128,
    ledger: Arc<Ledger>,
}

impl Pace {
    pub(super) fn new(node: &Node, every: Duration, ledger: Arc<Ledger>) -> anyhow::Result<Self> {
        let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis();
        let namespaces = Plugin::namespaces(node, NAMESPACES)?;
        Ok(Self { plugin: Plugin::of(node)?, namespaces, every, stamp, ledger })
    }

    /// Runs until it is told to stop, and then until the last DEL has succeeded.
    pub(super) async fn run(self, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut pairs = JoinSet::new();
        let mut namespaces = self.namespaces.iter().cycle();
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            number += 1;
            let netns = namespaces.next().context("no network namespace")?.clone();
            let name = format!("p{}-{number}", self.stamp);
            let to = Attachment { container: name.clone(), pod: name, netns };
            let keep = if number % KEEP == 1 { Keep::Alive } else { Keep::Delete };
            let (plugin, ledger) = (self.plugin.clone(), Arc::clone(&self.ledger));
            pairs.spawn_blocking(move || pair(&plugin, &ledger, &to, keep));
            while let Some(done) = pairs.try_join_next() {
                done.context("a pair panicked")??;
            }
        }
        while let Some(done) = pairs.join_next().await {
            done.context("a pair panicked")??;
        }
        Ok(())
    }
}

/// What becomes of a pod that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Alive,
    Delete,
}

/// An ADD and its DEL; after an ADD that failed there is one too, as every runtime does it.
fn pair(plugin: &Plugin, ledger: &Ledger, to: &Attachment, keep: Keep) -> anyhow::Result<()> {
    if call(plugin, ledger, Kind::Add, to)?.is_none() {
        ledger.lives(&to.container);
        if keep == Keep::Alive {
            return Ok(());
        }
    }
    ledger.goes(&to.container);
    let begin = Instant::now();
    while let Some(why) = call(plugin, ledger, Kind::Del, to)? {
        if begin.elapsed() > RID_LIMIT {
            bail!("the DEL of {} did not succeed within {RID_LIMIT:?}: {why}", to.container);
        }
        // pause: of the poll
        std::thread::sleep(RID_PAUSE);
    }
    Ok(())
}

/// One call; why it failed.
fn call(plugin: &Plugin, ledger: &Ledger, kind: Kind, to: &Attachment) -> anyhow::Result<Option<String>> {
    let began = Instant::now();
    let output = plugin.call(if kind == Kind::Add { "ADD" } else { "DEL" }, to)?;
    let took = began.elapsed();
    let failed = (!output.status.success()).then(|| {
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        format!("{}: {said}", output.status)
    });
    ledger.note(Call { kind, pod: to.pod.clone(), began, took, failed: failed.clone() });
    Ok(failed)
}
