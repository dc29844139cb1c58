//! What became of each call, and which pods live.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::roll::Rolled;

/// What was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `RunPodSandbox`: the chain's ADD.
    Run,
    /// `StopPodSandbox`: the chain's DEL.
    Stop,
    /// `RemovePodSandbox`: the chain's DEL once more.
    Remove,
    /// The plugin's ADD alone.
    Add,
    /// The plugin's DEL alone.
    Del,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// What.
    pub kind: Kind,
    /// For which pod.
    pub pod: String,
    /// Since when.
    pub began: Instant,
    /// How long.
    pub took: Duration,
    /// Why it failed; none if it did not.
    pub failed: Option<String>,
}

impl Call {
    /// Whether some of it lies within `from` and `to`.
    pub fn touches(&self, from: Instant, to: Instant) -> bool {
        self.began <= to && self.began + self.took >= from
    }
}

/// All calls of a load, and the container ids that it left alive.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The calls, in the order in which they ended.
    pub calls: Vec<Call>,
    /// The pods that live: their ADD was acknowledged and no DEL was.
    pub living: BTreeSet<String>,
}

impl Record {
    /// The calls that failed.
    pub fn failed(&self) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.failed.is_some()).collect()
    }

    /// How many calls were under way at a hand-over, between SIGTERM and the new owner. Without any, rolls under load show
    /// nothing.
    pub fn at_hand_overs(&self, rolls: &[Rolled]) -> usize {
        let touched = |call: &&Call| rolls.iter().any(|roll| call.touches(roll.told, roll.owns));
        self.calls.iter().filter(touched).count()
    }

    /// How many calls of a kind ended well.
    pub fn succeeded(&self, kind: Kind) -> usize {
        self.calls.iter().filter(|call| call.kind == kind && call.failed.is_none()).count()
    }

    /// An error that shows every failed call; none if there is none.
    pub fn nothing_failed(&self) -> anyhow::Result<()> {
        let failed: Vec<_> = self
            .failed()
            .iter()
            .map(|call| {
                let why = call.failed.as_deref().unwrap_or_default();
                format!("{:?} of {} after {:?}: {why}", call.kind, call.pod, call.took)
            })
            .collect();
        anyhow::ensure!(
            failed.is_empty(),
            "{} of {} calls failed:\n{}",
            failed.len(),
            self.calls.len(),
            failed.join("\n")
        );
        Ok(())
    }

    /// Adds another load's record.
    pub fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.living.extend(other.living);
    }
}

/// The record that the clients of a load write.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Record>);

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a call down.
    pub(super) fn note(&self, call: Call) {
        self.lock().calls.push(call);
    }

    /// A pod's ADD was acknowledged.
    pub(super) fn lives(&self, container: &str) {
        self.lock().living.insert(container.to_owned());
    }

    /// A pod is about to be deleted, or was.
    pub(super) fn goes(&self, container: &str) {
        self.lock().living.remove(container);
    }

    /// How many calls have ended well.
    pub(super) fn well(&self) -> usize {
        self.lock().calls.iter().filter(|call| call.failed.is_none()).count()
    }

    pub(super) fn record(&self) -> Record {
        self.lock().clone()
    }
}
