//! The steps of a takeover with their durations, for the log and for `aetherctl takeover`.

use std::time::Duration;

use super::Socket;
use super::event::Changes;
use super::moment::Moment;

/// A step of a takeover (T05), in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// From the start, from the owner's "yours" or from the end of its connection to the lock; nothing where the lock came
    /// before either.
    Lock,
    /// Looking at the paths, and waiting for whoever still listens there (T06, T08).
    Paths,
    /// Tombstones to the files.
    Tombstones,
    /// The table made what the disk holds.
    Reconcile,
    /// Serving on `cni.sock`; `handover.sock` comes right behind.
    Serve,
    /// Waiting for the certificates of the pods that were added.
    Certificates,
    /// Serving on `xds.sock`.
    Proxies,
    /// Modules and held-back writers.
    Modules,
}

impl Step {
    /// The step's name in logs and in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Paths => "paths",
            Self::Tombstones => "tombstones",
            Self::Reconcile => "reconcile",
            Self::Serve => "serve",
            Self::Certificates => "certificates",
            Self::Proxies => "proxies",
            Self::Modules => "modules",
        }
    }
}

/// How a socket came to be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// On the listener that the predecessor handed over: nobody saw the path unbound.
    HandedOver,
    /// Bound under a temporary name and renamed over the path.
    Bound,
}

impl Placed {
    /// Its name in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::HandedOver => "handed-over",
            Self::Bound => "bound",
        }
    }
}

/// One takeover.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// When the lock was taken.
    pub locked: Moment,
    /// Whether the predecessor said "yours", having flushed; otherwise it died.
    pub yours: bool,
    /// The steps done so far, in the order in which they ended.
    pub steps: Vec<(Step, Duration)>,
    /// Tombstones that were applied.
    pub tombstones: usize,
    /// What the reconcile found.
    pub changes: Changes,
    /// How each socket was placed.
    pub placed: Vec<(Socket, Placed)>,
}

impl Report {
    /// How long a step took; nothing where it was not done.
    pub fn took(&self, step: Step) -> Option<Duration> {
        self.steps.iter().find(|(done, _)| *done == step).map(|(_, took)| *took)
    }
}
