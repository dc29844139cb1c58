//! What an agent hears.

use std::collections::BTreeMap;

use super::gates::{Gate, GateState};
use super::message::{ToOwner, ToStandby};
use super::moment::{Attach, Batch, Look, Peer, Round};
use super::report::Step;
use super::{Identity, Socket};
use crate::pods::Presence;

/// Something that happened. One that fits the phase no more is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The process has begun.
    Started,
    /// Nothing but time.
    Tick,
    /// SIGTERM.
    Terminate,
    /// A gate of readiness changed (T04).
    Gate {
        /// Which.
        gate: Gate,
        /// What it is now.
        state: GateState,
    },

    /// Another process holds the lock.
    LockHeld,
    /// The lock is ours, and the path still names the locked file (T01).
    LockTaken,

    /// Nobody could be called on: `handover.sock` is missing, refuses, or its queue is full.
    AttachFailed {
        /// The call.
        attach: Attach,
    },
    /// The owner said something.
    FromOwner {
        /// The attachment.
        attach: Attach,
        /// What it said.
        message: ToStandby,
        /// The listeners that came with it, as many as it names.
        batch: Option<Batch>,
    },
    /// The attachment ended, or what came over it could not be read.
    OwnerGone {
        /// The attachment.
        attach: Attach,
    },

    /// What a look found.
    Seen {
        /// The look.
        look: Look,
        /// What it found.
        sight: Sight,
    },
    /// The tombstones are applied to the files (T05).
    TombstonesApplied {
        /// How many there were.
        applied: usize,
    },
    /// The table is what the disk holds (T05, S03).
    Reconciled {
        /// What was different.
        changes: Changes,
    },
    /// This agent accepts on a socket.
    Serving {
        /// Which.
        socket: Socket,
        /// What its path named right after the bind.
        identity: Identity,
    },
    /// Tombstones or reconcile failed; the shell has said why.
    StepFailed {
        /// Which.
        step: Step,
    },
    /// A socket cannot be served; the shell has said why.
    OpenFailed {
        /// Which.
        socket: Socket,
    },
    /// Every pod that this takeover added has its certificate.
    CertificatesReady,
    /// The modules are enabled and the held-back writers run.
    ModulesEnabled,

    /// A standby said something.
    FromStandby {
        /// Which.
        peer: Peer,
        /// What it said.
        message: ToOwner,
    },
    /// A standby's connection ended, or what came over it could not be read.
    StandbyGone {
        /// Which.
        peer: Peer,
    },
    /// What a look at a standby's connection found.
    PeerSeen {
        /// Which.
        peer: Peer,
        /// The drain in which it was asked.
        round: Round,
        /// Whether the other side still holds it.
        presence: Presence,
    },
    /// Nothing is in flight: no call, no tombstone in hand.
    Drained {
        /// The drain.
        round: Round,
    },
    /// Everything is on the disk.
    Flushed {
        /// The drain.
        round: Round,
    },
}

/// What a reconcile found different from what the agent had read before (S03).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Records that it had not read.
    pub added: usize,
    /// Records with other content.
    pub updated: usize,
    /// Records that are gone.
    pub removed: usize,
}

/// What a look at lock and paths found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The lock.
    pub lock: Lock,
    /// The paths of the node's sockets.
    pub paths: BTreeMap<Socket, Path>,
}

/// Whether the lock's path still names the locked file (T01).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// It does.
    Ours,
    /// It names another file or none: somebody removed it by hand. A lock on such a file is no lock.
    Replaced,
}

/// What a socket's path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The socket that this agent serves, or holds a duplicate of.
    Ours,
    /// Nothing, or something on which nobody listens.
    Dead,
    /// Another socket, on which somebody listens.
    Live {
        /// The listener's process where the kernel tells it (`SO_PEERCRED`).
        pid: Option<u32>,
    },
}

impl Sight {
    /// What `socket`'s path names; a path that was not looked at counts as dead.
    pub fn path(&self, socket: Socket) -> Path {
        self.paths.get(&socket).copied().unwrap_or(Path::Dead)
    }
}
