//! Where this agent stands, for everybody who asks: probes, the admin socket, metrics.

use std::time::{Duration, Instant};

use aether_domain::takeover::{Machine, Moment, Phase, Readiness};
use tokio::sync::watch;

use crate::node::Role;

/// The one clock of the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> Moment {
        Moment::from_nanos(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a moment.
    pub(super) fn instant(self, moment: Moment) -> Instant {
        self.0 + Duration::from_nanos(moment.nanos())
    }
}

/// The machine as it was after its last event.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    machine: Machine,
    clock: Clock,
}

/// Follows it.
pub(crate) type Watch = watch::Receiver<Standing>;

impl Standing {
    pub(super) fn new(machine: Machine, clock: Clock) -> Self {
        Self { machine, clock }
    }

    pub(super) fn parts(&self) -> (Machine, Clock) {
        (self.machine.clone(), self.clock)
    }

    /// Whether this agent serves.
    pub(crate) fn role(&self) -> Role {
        match self.machine.phase() {
            Phase::Owner(_) => Role::Owner,
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Taking(_) | Phase::Ended => {
                Role::Standby
            }
        }
    }

    /// The gates that are missing; none where it is ready (T04).
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        match self.machine.readiness(self.clock.now()) {
            Readiness::Ready => Vec::new(),
            Readiness::Missing(gates) => gates,
        }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How long ago a moment was.
    pub(crate) fn since(&self, moment: Moment) -> Duration {
        self.clock.now().since(moment)
    }
}
