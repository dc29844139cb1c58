//! One agent's whole life on a node that it may have to share with another (T01-T13), without I/O.
//!
//! [`Machine`] takes [`Event`]s with the moment at which they came and answers with [`Effect`]s, in the order in which
//! they are to be done. It reads no clock: [`Machine::wake_at`] says when it wants to hear [`Event::Tick`]. Whatever the
//! order of events, the named [`invariants`] hold.
//!
//! ```text
//!  Started ── lock free ──────────────────────────┐
//!     │ lock held                                 ▼            SIGTERM, drained, flushed
//!     ▼                                        Taking ──> Owner ──────────────────────────> Ended
//!  Standby: calls on handover.sock, is greeted,   ▲         │ greets standbys, asks the chosen one "ready?"
//!           passes its gates, is chosen ── lock ──┘         ▼ before it drains, says "yours" after the flush
//! ```
//!
//! The protocol was checked as a model before it was built (`agent-core/docs/model`), and this machine runs in a
//! simulation of a whole node (`agent-core/sim`). A change of the protocol starts at the model (T14).

pub mod codec;
mod effect;
mod event;
mod gates;
pub mod invariants;
mod leaving;
mod machine;
pub mod message;
mod moment;
mod note;
mod owner;
mod phase;
mod report;
mod standby;
mod taking;

pub use effect::{Effect, Reason};
pub use event::{Changes, Event, Lock, Path, Sight};
pub use gates::{Gate, GateRule, GateState, Patience, Readiness};
pub use machine::{Config, Machine, Proxies};
pub use moment::{Attach, Batch, Look, Moment, Peer, Round};
pub use note::Note;
pub use phase::{
    Attached, Called, Came, Cause, Drain, Held, Leaving, Link, LockTry, Owner, Phase, Settling, Stage,
    Standby, Taking, Told, Waited,
};
pub use report::{Placed, Report, Step};

/// A socket of the node that one agent serves and hands over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Socket {
    /// `cni.sock`, for the plugin.
    Cni,
    /// `handover.sock`, for standbys.
    Handover,
    /// `xds.sock`, for the node's proxy; served last (T05).
    Xds,
}

impl Socket {
    /// Its name in the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cni => "cni",
            Self::Handover => "handover",
            Self::Xds => "xds",
        }
    }
}

/// Which file a path named right after its socket was bound: what tells our socket from another's (T13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The device number.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}
