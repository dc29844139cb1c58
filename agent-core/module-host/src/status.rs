//! What is known of a module (M11).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::action::Outcome;
use crate::failure::Failure;
use crate::manifest::Name;
use crate::series::Series;
use crate::verdict::{By, Verdict};

/// Where the running version comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Embedded in the agent.
    Builtin,
    /// The directory of operator modules.
    Operator,
}

impl Source {
    /// The source's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Operator => "operator",
        }
    }
}

/// A module's status.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Its name.
    pub name: Name,
    /// Its world; empty where its manifest does not say.
    pub world: &'static str,
    /// Its state, by its stable name.
    pub state: &'static str,
    /// Where the running version comes from.
    pub source: Source,
    /// The version, as its manifest says.
    pub version: String,
    /// The digest of the running component; empty where none runs.
    pub digest: String,
    /// `enforce` or `audit`.
    pub mode: &'static str,
    /// `deny`, `allow` or `last-good`; empty for behaviours.
    pub on_failure: &'static str,
    /// What is wrong with the files on disk, cause and remedy; empty when nothing is. A module may run while this is
    /// set: then it is the version before, or the built-in one.
    pub problem: String,
    /// What the module itself says about its work; empty when all is well.
    pub note: String,
    /// The last failure of a call.
    pub last_error: String,
    /// Counters.
    pub counts: Counts,
    /// Log lines that were over the rate.
    pub log_lines_dropped: u64,
    /// The module's own series.
    pub series: Series,
}

/// A module's counters. They outlive its versions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of its exports.
    pub calls: u64,
    /// Failures, by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// Verdicts, by who gave them and what they were.
    pub verdicts: BTreeMap<(&'static str, &'static str), u64>,
    /// Actions, by name and what came of them.
    pub actions: BTreeMap<(&'static str, &'static str), u64>,
    /// How often a new version was taken.
    pub loads: u64,
    /// The duration of the last call.
    pub last: Duration,
    /// The duration of all calls.
    pub total: Duration,
    /// The largest linear memory of any instance, in bytes.
    pub memory_peak: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Stats(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: Counts,
    last_error: String,
}

impl Stats {
    pub(crate) fn call(&self, took: Duration, peak: usize) {
        self.with(|inner| {
            let counts = &mut inner.counts;
            counts.calls = counts.calls.saturating_add(1);
            counts.last = took;
            counts.total = counts.total.saturating_add(took);
            counts.memory_peak = counts.memory_peak.max(peak);
        });
    }

    pub(crate) fn failure(&self, failure: &Failure) {
        self.with(|inner| {
            *inner.counts.failures.entry(failure.kind()).or_default() += 1;
            inner.last_error = failure.to_string();
        });
    }

    pub(crate) fn verdict(&self, by: By, verdict: &Verdict) {
        let by = match by {
            By::Module => "module",
            By::FailurePolicy => "failure-policy",
        };
        self.with(|inner| *inner.counts.verdicts.entry((by, verdict.name())).or_default() += 1);
    }

    pub(crate) fn action(&self, action: &'static str, outcome: &Outcome) {
        self.with(|inner| *inner.counts.actions.entry((action, outcome.name())).or_default() += 1);
    }

    pub(crate) fn load(&self) {
        self.with(|inner| inner.counts.loads = inner.counts.loads.saturating_add(1));
    }

    pub(crate) fn read(&self) -> (Counts, String) {
        self.with(|inner| (inner.counts.clone(), inner.last_error.clone()))
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        // Counters: whatever a panicking holder left is as good as any.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
