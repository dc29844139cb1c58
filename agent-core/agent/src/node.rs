//! What every part of the agent shares: its role, the pods, the chain, the numbers.

use std::sync::{Arc, Mutex, PoisonError};

use aether_chain_watch::Observation;
use aether_cni_server::Handle;
use aether_module_host::lifecycle::State;
use aether_pod_store::Store;
use aether_telemetry::Metrics;
use aether_telemetry::logs::Level;
use aether_telemetry::metrics::StoreNumbers;
use tokio::sync::watch;

use crate::modules::{Modules, told};
use crate::takeover::{Standing, Watch};

/// Whether this agent owns the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It holds the node lock, and serves.
    Owner,
    /// It waits for the lock, or holds it and does not serve yet.
    Standby,
}

impl Role {
    const NAMES: [&'static str; 2] = ["owner", "standby"];

    /// The role's stable name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Standby => "standby",
        }
    }
}

/// The shared parts.
pub(crate) struct Node {
    pub(crate) store: Store,
    pub(crate) chain: watch::Receiver<Observation>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) level: Level,
    pub(crate) cni: Handle,
    pub(crate) modules: Arc<Modules>,
    standing: Watch,
    /// Held from when the numbers are taken over until they are printed.
    scrape: Mutex<()>,
}

impl Node {
    pub(crate) fn new(
        store: Store,
        chain: watch::Receiver<Observation>,
        metrics: Arc<Metrics>,
        level: Level,
        cni: Handle,
        modules: Arc<Modules>,
        standing: Watch,
    ) -> Self {
        metrics.set_role(Role::Standby.name(), &Role::NAMES);
        Self { store, chain, metrics, level, cni, modules, standing, scrape: Mutex::default() }
    }

    pub(crate) fn role(&self) -> Role {
        self.standing.borrow().role()
    }

    /// Where the agent stands now.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// This agent serves from now on.
    pub(crate) fn became_owner(&self) {
        self.metrics.set_role(Role::Owner.name(), &Role::NAMES);
        self.metrics.serving_began();
        self.modules.ends.serving(true);
    }

    /// No new calls are taken from now on.
    pub(crate) fn left_off(&self) {
        self.metrics.serving_ended();
        self.modules.ends.serving(false);
    }

    /// What `/metrics` answers. Blocks for as long as a module is in the middle of a call.
    pub(crate) fn exposition(&self) -> String {
        // It guards no data.
        let _one = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = self.store.counts();
        self.metrics.store(&StoreNumbers {
            records: self.store.count(),
            unusable: self.store.unusable().len(),
            quarantined: counts.quarantined,
            other_boot: counts.other_boot,
            tombstones_applied: counts.tombstones_applied,
            tombstones_dropped: counts.tombstones_dropped,
            tombstones_failed: counts.tombstone_passes_failed,
            sweeps_done: counts.sweeps_done,
            sweeps_held: counts.sweeps_held,
            sweeps_failed: counts.sweeps_failed,
            swept: counts.swept,
            writes_failed: counts.write_failures,
        });
        self.metrics.adds_in_flight(self.cni.adds_in_flight());
        self.modules.ends.publish();
        let modules: Vec<_> = self.modules.host.status().into_iter().map(told::numbers).collect();
        self.metrics.modules(&modules, &State::NAMES, self.modules.host.problems().len());
        self.metrics.render()
    }
}
