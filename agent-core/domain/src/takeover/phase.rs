//! The phases of an agent's life and what each remembers.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Path;
use super::message::{Greeting, Listener, Role};
use super::moment::{Attach, Batch, Look, Moment, Peer, Round};
use super::report::Step;
use super::{Identity, Socket};

/// Where an agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Not begun.
    New,
    /// The lock is being tried for the first time (T01).
    Starting,
    /// Without the lock: it builds everything, binds nothing and writes nothing (T03).
    Standby(Standby),
    /// With the lock, on the way to serving (T05).
    Taking(Taking),
    /// Serving (T05), until SIGTERM has been obeyed (T07, T12).
    Owner(Owner),
    /// It ends.
    Ended,
}

impl Phase {
    /// The phase's name in status and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::New | Self::Starting => "starting",
            Self::Standby(_) => "standby",
            Self::Taking(_) => "taking",
            Self::Owner(owner) => match owner.leaving {
                Leaving::No => "owner",
                Leaving::Waiting { .. } | Leaving::Asking { .. } => "leaving",
                Leaving::Draining(_) | Leaving::Flushing(_) | Leaving::Looking(_) => "draining",
            },
            Self::Ended => "ended",
        }
    }
}

/// A standby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standby {
    /// Its way to the owner.
    pub link: Link,
    /// How it tries for the lock.
    pub lock: LockTry,
    /// The listeners that were handed to it last.
    pub held: Option<Held>,
    /// What it last told the owner of its gates.
    pub told: Told,
    /// Since when it has waited for the lock: its start, the last owner's "yours", or the end of its connection.
    pub since: Moment,
    /// Whether the last owner said "yours".
    pub yours: bool,
}

/// A standby's way to the owner (T13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// None; the next call is due then.
    Apart {
        /// When.
        again: Moment,
    },
    /// It has called and waits to be greeted; after that it calls anew on what the path then names.
    Calling {
        /// The call.
        attach: Attach,
        /// Until when.
        until: Moment,
    },
    /// Greeted.
    Greeted {
        /// The attachment.
        attach: Attach,
    },
}

/// How a standby tries for the lock (T13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockTry {
    /// Without blocking, again and again: nobody has greeted it, or the owner's connection has ended.
    Polling {
        /// The next attempt.
        next: Moment,
    },
    /// In flock: it is the chosen one.
    Waiting,
    /// Not at all: an owner has greeted it, and another standby is the chosen one.
    Resting,
}

/// What a standby last told its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing, or that it is incomplete.
    Incomplete,
    /// That it is complete.
    Complete,
}

/// Duplicates of an owner's listeners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The descriptors, by the greeting that they came with.
    pub batch: Batch,
    /// What they are.
    pub listeners: Vec<Listener>,
}

impl Held {
    pub(super) fn new(batch: Batch, greeting: &Greeting) -> Self {
        Self { batch, listeners: greeting.listeners.clone() }
    }

    /// Whether a listener of `socket` is among them.
    pub fn has(&self, socket: Socket) -> bool {
        self.listeners.iter().any(|listener| listener.socket == socket)
    }
}

/// An agent that has the lock and does not serve yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taking {
    /// The listeners that the predecessor handed over.
    pub held: Option<Held>,
    /// The step.
    pub stage: Stage,
    /// When the step began.
    pub stage_since: Moment,
    /// Since when a foreign listener or an owner without the lock has been waited for, and when that was last said.
    pub waited: Option<Waited>,
    /// Whether it was a standby before.
    pub came: Came,
    /// Whether what listens was called on.
    pub called: Called,
    /// The step that failed last. All is tried again, and until it serves the agent is not ready.
    pub failed: Option<Step>,
}

/// Whether an heir has called on what still listens (T08).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// It has not.
    No,
    /// It has, and nobody greeted it: only standbys hold that listener.
    Silence,
}

/// How an agent came to the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// It found the lock free at its start (T02).
    Lone,
    /// It was a standby.
    Heir,
}

/// A wait for somebody else's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// Since when.
    pub since: Moment,
    /// When it was last said.
    pub said: Moment,
}

/// A step on the way to serving, in T05's order. Whatever fails leads back to the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Looks at the paths: does anybody still listen (T06, T08)?
    Looking {
        /// The look.
        look: Look,
    },
    /// Somebody listens who knows no hand-over: waits for his end (T06), and looks again then.
    Foreign {
        /// When.
        again: Moment,
    },
    /// Somebody listens, on `handover.sock` too. A standby's duplicate never greets; an owner whose lock file was removed by
    /// hand does.
    Calling {
        /// The call.
        attach: Attach,
        /// How long a greeting is waited for.
        until: Moment,
    },
    /// The owner's connection still stands. It is dying, or the lock file was removed by hand and it lives: waits until it has
    /// drained and ended (T01).
    Yielding {
        /// The attachment to it.
        attach: Attach,
        /// The next look at the lock.
        again: Moment,
    },
    /// (1) Applies the tombstones to the files.
    Tombstones,
    /// (1) Reconciles the records.
    Reconciling,
    /// Looks at the paths once more, now that they are to be served: the wait may have been long.
    Placing {
        /// The look.
        look: Look,
    },
    /// (2) Begins to serve: with the CNI socket it is the owner.
    Opening {
        /// The sockets that are served so far.
        open: BTreeMap<Socket, Identity>,
        /// What `xds.sock` named when the paths were looked at.
        xds: Path,
        /// The CNI socket could not be served: tried again then.
        again: Option<Moment>,
        /// The look before that.
        look: Option<Look>,
    },
    /// A step failed; all is tried again then.
    Failed {
        /// When.
        again: Moment,
    },
}

/// An owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The sockets that it serves.
    pub listeners: BTreeMap<Socket, Identity>,
    /// The sockets that are being bound.
    pub opening: BTreeSet<Socket>,
    /// What is left of the listeners that were handed over to it.
    pub held: Option<Held>,
    /// The attached standbys.
    pub peers: BTreeMap<Peer, Attached>,
    /// The standby that waits in flock: the newest complete one.
    pub chosen: Option<Peer>,
    /// What SIGTERM has come to.
    pub leaving: Leaving,
    /// Steps (3) and (4), which end while it serves already.
    pub settling: Settling,
    /// The next look at lock and paths (T01).
    pub next_look: Moment,
    /// The look that is on its way.
    pub look: Option<Look>,
    /// Since when somebody else has listened on one of our paths.
    pub stranger: Option<Waited>,
    /// The sockets that the last look did not find at their paths, and that are not served there again yet.
    pub lost: BTreeSet<Socket>,
    /// When it was last said that a standby was turned away.
    pub turned_away: Option<Moment>,
}

impl Owner {
    pub(super) fn new(listeners: BTreeMap<Socket, Identity>, held: Option<Held>, next_look: Moment) -> Self {
        Self {
            listeners,
            opening: BTreeSet::new(),
            held,
            peers: BTreeMap::new(),
            chosen: None,
            leaving: Leaving::No,
            settling: Settling { xds: Path::Dead, certificates: None, proxies: None, modules: None },
            next_look,
            look: None,
            stranger: None,
            lost: BTreeSet::new(),
            turned_away: None,
        }
    }
}

/// One attached standby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Its name.
    pub name: String,
    /// When it started, in nanoseconds of the boot-time clock.
    pub started: u64,
    /// What it is.
    pub role: Role,
    /// The version that both speak.
    pub version: u32,
    /// Whether its gates have passed.
    pub told: Told,
}

/// The steps that end while it serves already (T05).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling {
    /// What `xds.sock` named before anything was served.
    pub xds: Path,
    /// (3) Until when certificates are waited for, and since when.
    pub certificates: Option<(Moment, Moment)>,
    /// (3) Since when `xds.sock` is being opened.
    pub proxies: Option<Moment>,
    /// (4) Since when the modules are being enabled.
    pub modules: Option<Moment>,
}

/// Why an owner drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// SIGTERM.
    Terminated,
    /// Its lock is none any more (T01): such a drain is never taken back.
    LockReplaced,
}

/// What SIGTERM has come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// It has not come.
    No,
    /// It serves on until a standby is complete, at the longest until then (T12).
    Waiting {
        /// Until when.
        until: Moment,
    },
    /// A complete standby was asked "ready?" (T07).
    Asking {
        /// Which.
        peer: Peer,
        /// How long its answer is waited for.
        answer_by: Moment,
        /// Those that were asked.
        asked: BTreeSet<Peer>,
        /// The end of T12's wait.
        until: Moment,
    },
    /// It accepts nothing and finishes what is in flight.
    Draining(Drain),
    /// Nothing is in flight; what is held back is written.
    Flushing(Drain),
    /// It looks a last time whether the chosen standby lives.
    Looking(Drain),
}

/// One drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// Its number.
    pub round: Round,
    /// The standby that said "ready".
    pub successor: Option<Peer>,
    /// Why.
    pub cause: Cause,
    /// The end of T12's wait, should the drain be taken back.
    pub until: Moment,
}

impl Leaving {
    /// The drain that is under way.
    pub fn drain(&self) -> Option<Drain> {
        match self {
            Self::No | Self::Waiting { .. } | Self::Asking { .. } => None,
            Self::Draining(drain) | Self::Flushing(drain) | Self::Looking(drain) => Some(*drain),
        }
    }
}
