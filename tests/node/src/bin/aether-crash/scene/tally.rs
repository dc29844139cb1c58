//! What was killed, and what became of it.

use std::fmt;

use aether_harness::audit::Findings;
use aether_harness::load::{Kind, Record};

/// The counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Killed agents.
    pub(super) agents: u32,
    /// Killed installers.
    pub(super) installers: u32,
    /// Killed plugins.
    pub(super) plugins: u32,
    /// Pairs of ADD and DEL that were to be killed.
    pub(super) pairs: u32,
    /// Pods that the runtime started, and ADDs of the plugin alone.
    pods: usize,
    adds: usize,
    /// What failed of the load, which nobody killed.
    failed: Vec<String>,
    /// What the audits found.
    pub(super) findings: Findings,
}

impl Tally {
    /// Whether nothing failed that was not killed, and nothing was lost, left or torn.
    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_clean() && self.failed.is_empty()
    }

    /// Adds what a load and its audit came to.
    pub(super) fn chapter(&mut self, record: &Record, findings: Findings) {
        self.pods += record.succeeded(Kind::Run);
        self.adds += record.succeeded(Kind::Add);
        for call in record.failed() {
            let why = call.failed.as_deref().unwrap_or_default();
            self.failed.push(format!("{:?} of {} after {:?}: {why}", call.kind, call.pod, call.took));
        }
        self.findings.add(findings);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "killed: {} agents, {} installers, {} plugins",
            self.agents, self.installers, self.plugins
        )?;
        writeln!(
            f,
            "load: {} pods started by containerd, {} ADDs by the plugin alone, {} calls failed",
            self.pods,
            self.adds,
            self.failed.len()
        )?;
        for failed in &self.failed {
            writeln!(f, "  failed: {failed}")?;
        }
        write!(f, "{}", self.findings)
    }
}
