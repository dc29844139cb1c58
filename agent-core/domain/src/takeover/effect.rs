//! What an agent does.

use super::Socket;
use super::message::{Greeting, Hello, ToOwner, ToStandby};
use super::moment::{Attach, Batch, Look, Peer, Round};
use super::note::Note;

/// Something for the shell to do, in the order in which it stands. Where an answer is named, exactly one comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Begin to build everything that gates readiness (T03, T04); answers: [`super::Event::Gate`], as they come.
    Build,
    /// Try for the lock without blocking (T01); answer: `LockTaken` or `LockHeld`.
    TryLock,
    /// Have a thread wait in flock; answer: `LockTaken`, unless `StopWaiting` comes first.
    WaitLock,
    /// A lock that the thread still gets is let go at once, unanswered. (flock cannot be called off.)
    StopWaiting,

    /// Connect to `handover.sock` and say hello; answers: `AttachFailed`, or `FromOwner` and in the end `OwnerGone`.
    Attach {
        /// The attachment.
        attach: Attach,
        /// What to say first.
        hello: Hello,
    },
    /// Close the attachment; nothing of it is answered any more.
    Detach {
        /// The attachment.
        attach: Attach,
    },
    /// Say something to the owner.
    ToOwner {
        /// The attachment.
        attach: Attach,
        /// What.
        message: ToOwner,
    },
    /// Close what is left of the listeners that came with a greeting; those that are served stay.
    Close {
        /// The greeting's listeners.
        batch: Batch,
    },

    /// Compare lock and socket paths with what this agent holds: by identity first, and only where a path names
    /// another file by a connection; answer: `Seen`.
    Look {
        /// The look.
        look: Look,
    },
    /// Apply the tombstones to the files: each record first, durably, then its tombstone (K07); answer:
    /// `TombstonesApplied` or `StepFailed`.
    ApplyTombstones,
    /// Make the table what the disk holds, by difference (T05, S03); answer: `Reconciled` or `StepFailed`.
    Reconcile,
    /// Call `listen` on the handed-over listener again, so that `SO_PEERCRED` names this process, and accept (T08);
    /// answer: `Serving` or `OpenFailed`.
    Listen {
        /// The socket.
        socket: Socket,
        /// The greeting that it came with.
        batch: Batch,
    },
    /// Bind under a temporary name, listen, rename over the path, take its identity, accept; a listener that served the
    /// socket before is closed after that (T08); answer: `Serving` or `OpenFailed`.
    Bind {
        /// The socket.
        socket: Socket,
    },
    /// Wait for the certificates of the pods that this takeover added; answer: `CertificatesReady`, in time or not.
    AwaitCertificates,
    /// Enable the modules and start the held-back writers (M02); answer: `ModulesEnabled`.
    EnableModules,

    /// Send a standby the greeting with duplicates of the listeners that it names, in its order, in one message.
    Greet {
        /// The standby.
        peer: Peer,
        /// The greeting.
        greeting: Greeting,
    },
    /// Say something to a standby.
    ToStandby {
        /// The standby.
        peer: Peer,
        /// What.
        message: ToStandby,
    },
    /// Close a standby's connection.
    Drop {
        /// The standby.
        peer: Peer,
    },

    /// Stop accepting CNI calls but leave the listeners open (a refused DEL would leave no tombstone), answer ADDs that only
    /// wait for an ACK, finish what is in flight (T07); answer: `Drained`, unless `TakeBack` comes first.
    Drain {
        /// The drain.
        round: Round,
    },
    /// Accept CNI calls again.
    TakeBack {
        /// The drain that is taken back.
        round: Round,
    },
    /// Write what is still held back; answer: `Flushed`, also when it failed and was logged.
    Flush {
        /// The drain.
        round: Round,
    },
    /// Look whether the standby still holds its connection (a poll, without waiting); answer: `PeerSeen`.
    LookAt {
        /// The standby.
        peer: Peer,
        /// The drain.
        round: Round,
    },
    /// End the process. The lock goes with it, last; no path is unlinked (T07, T08).
    Exit {
        /// Why.
        reason: Reason,
    },
    /// Say it to whoever reads the log.
    Note(Note),
}

/// Why an agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// SIGTERM.
    Terminated,
    /// The lock's path names another file than the one it locked (T01).
    LockReplaced,
}
