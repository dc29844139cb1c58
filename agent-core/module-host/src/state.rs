//! What one instance carries: its grant, its limits, and what it staged in the current call.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wasmtime::ResourceLimiter;

use crate::action::{Action, Ownership, Staged};
use crate::bindings::aether::base::types::Refusal;
use crate::deadline::Deadline;
use crate::grant::Grant;
use crate::limits::{EVENTS_PER_MINUTE, Limits};
use crate::manifest::Name;
use crate::ports::Ports;
use crate::rate::Rate;
use crate::series::Series;

/// What outlives an instance: one of these per module, whatever version runs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: Name,
    pub(crate) began: Instant,
    pub(crate) talk: Mutex<Talk>,
    /// How many actions were staged. Not an instance's: a new one may hear what came of its predecessor's actions.
    tickets: AtomicU64,
}

/// What a module says, bounded.
#[derive(Debug)]
pub(crate) struct Talk {
    pub(crate) lines: Rate,
    pub(crate) events: Rate,
    pub(crate) series: Series,
}

impl Shared {
    pub(crate) fn new(name: Name, began: Instant, limits: &Limits) -> Arc<Self> {
        let talk = Talk {
            lines: Rate::new(limits.log_lines_per_minute),
            events: Rate::new(EVENTS_PER_MINUTE),
            series: Series::default(),
        };
        Arc::new(Self { name, began, talk: Mutex::new(talk), tickets: AtomicU64::new(0) })
    }

    /// The host's clock.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// A ticket that no other action of the module has.
    fn ticket(&self) -> u64 {
        self.tickets.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    pub(crate) fn talk<R>(&self, with: impl FnOnce(&mut Talk) -> R) -> R {
        // Counters: whatever a panicking holder left is as good as any.
        with(&mut self.talk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The data of one store.
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) grant: Arc<Grant>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) ports: Arc<dyn Ports>,
    pub(crate) ownership: Ownership,
    pub(crate) deadline: Deadline,
    pub(crate) staged: Vec<Staged>,
    /// The largest linear memory so far, in bytes.
    pub(crate) peak: usize,
    /// The growth that was refused last, in words.
    pub(crate) refused_growth: Option<String>,
    /// The last line at level error: a panic's message, where the module has the SDK's hook.
    pub(crate) last_error: Option<String>,
}

impl State {
    /// Checks and stages an action; the ticket names it.
    pub(crate) fn stage(&mut self, action: Action) -> Result<u64, Refusal> {
        let generation = self.ownership.generation().ok_or(Refusal::Standby)?;
        action.covered(&self.grant).map_err(Refusal::NotGranted)?;
        if self.staged.len() >= self.limits.actions {
            return Err(Refusal::OverQuota);
        }
        if let Action::ReplaceList { name, expect, bytes } = &action {
            crate::splice::check(&self.ports.conflist(), name, expect, bytes)
                .map_err(|refused| Refusal::Invalid(refused.to_string()))?;
        }
        let ticket = self.shared.ticket();
        self.staged.push(Staged { ticket, action, generation });
        Ok(ticket)
    }
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.limits.memory {
            self.refused_growth =
                Some(format!("memory of {desired} bytes, where limits.memory is {}", self.limits.memory));
            return Ok(false);
        }
        self.peak = self.peak.max(desired);
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.limits.table {
            self.refused_growth =
                Some(format!("a table of {desired} elements, where limits.table is {}", self.limits.table));
            return Ok(false);
        }
        Ok(true)
    }

    // The limits above hold for each memory and each table: so there is one of the first and few of the second.
    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        4
    }

    fn instances(&self) -> usize {
        32
    }
}
