//! What an agent says about its takeovers.

use std::fmt;
use std::time::Duration;

use super::Socket;
use super::report::{Placed, Step};

/// Something worth a line in the log. The text is its `Display`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// It became a standby.
    StandsBy,
    /// An owner greeted it.
    Attached {
        /// The owner.
        owner: String,
        /// How many listeners came along.
        listeners: usize,
    },
    /// The two speak no common version of the protocol; the takeover is done the plain way (T06).
    NoCommonVersion {
        /// The other's oldest and newest version.
        theirs: (u32, u32),
    },
    /// The owner it was attached to is gone.
    OwnerGone,
    /// It has the lock.
    Locked,
    /// Something listens on a path although the lock was free (T06, T08); said again every 30 s.
    ForeignListener {
        /// The socket.
        socket: Socket,
        /// The listener.
        pid: Option<u32>,
        /// How long it has been waited for.
        waited: Duration,
    },
    /// An agent without the lock still owns the node: the lock file was removed by hand (T01).
    OwnerWithoutLock {
        /// How long it has been waited for.
        waited: Duration,
    },
    /// A step of a takeover is done (T05).
    Done {
        /// The step.
        step: Step,
        /// How long it took.
        took: Duration,
    },
    /// A step of a takeover failed and is tried again.
    Failed {
        /// The step.
        step: Step,
    },
    /// A socket is served.
    Serves {
        /// The socket.
        socket: Socket,
        /// How it was placed.
        how: Placed,
    },
    /// The certificates did not come in time; proxies are served without them (T05).
    CertificatesLate,
    /// A path of ours named another socket or none; it is bound anew.
    PathLost {
        /// The socket.
        socket: Socket,
    },
    /// A standby attached.
    Greeted {
        /// The standby.
        standby: String,
    },
    /// A standby was not greeted.
    NotGreeted {
        /// Why.
        why: &'static str,
    },
    /// A standby waits for the lock now.
    Chosen {
        /// The standby.
        standby: String,
    },
    /// SIGTERM is put off until a standby is complete (T12).
    PutOff {
        /// At most so long.
        at_most: Duration,
    },
    /// A standby did not say "ready" in time (T07).
    NotReady {
        /// The standby.
        standby: String,
    },
    /// It drains.
    Drains {
        /// For whom; `None`: for nobody.
        successor: Option<String>,
    },
    /// The drain is taken back: the chosen standby is gone (T07).
    TakesBack,
    /// The lock's path names another file than the one that is locked (T01).
    LockReplaced,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandsBy => write!(f, "another agent owns this node: standing by"),
            Self::Attached { owner, listeners } => {
                write!(f, "attached to the owner {owner}, which handed over {listeners} listeners")
            }
            Self::NoCommonVersion { theirs: (oldest, newest) } => write!(
                f,
                "the other agent speaks versions {oldest} to {newest} of the hand-over, this one {} to {}: it is taken over \
                 the plain way, when it has ended",
                super::message::OLDEST,
                super::message::VERSION
            ),
            Self::OwnerGone => write!(f, "the owner's connection has ended: trying for the lock"),
            Self::Locked => write!(f, "this agent has the node lock"),
            Self::ForeignListener { socket, pid, waited } => {
                write!(f, "the lock was free, but ")?;
                match pid {
                    Some(pid) => write!(f, "process {pid}")?,
                    None => write!(f, "a process")?,
                }
                write!(
                    f,
                    " listens on the {} socket (for {} s now): waiting until it ends; end it if it is no agent",
                    name(*socket),
                    waited.as_secs()
                )
            }
            Self::OwnerWithoutLock { waited } => write!(
                f,
                "the lock was free, but another agent still owns the node (for {} s now; was the lock file removed by hand?): \
                 waiting until it has drained",
                waited.as_secs()
            ),
            Self::Done { step, took } => write!(f, "takeover: {} took {} us", step.name(), took.as_micros()),
            Self::Failed { step } => {
                write!(f, "takeover: {} failed (see the line before); it is tried again", step.name())
            }
            Self::Serves { socket, how: Placed::HandedOver } => {
                write!(f, "serving on the handed-over {} socket", name(*socket))
            }
            Self::Serves { socket, how: Placed::Bound } => {
                write!(f, "serving on the {} socket, bound anew", name(*socket))
            }
            Self::CertificatesLate => {
                write!(
                    f,
                    "not all certificates of the added pods came in time: serving the proxies without them"
                )
            }
            Self::PathLost { socket } => {
                write!(f, "the {} socket's path no longer names our socket: binding it anew", name(*socket))
            }
            Self::Greeted { standby } => write!(f, "the standby {standby} is attached"),
            Self::NotGreeted { why } => write!(f, "a standby was turned away: {why}"),
            Self::Chosen { standby } => write!(f, "the standby {standby} is complete and is to take over"),
            Self::PutOff { at_most } => write!(
                f,
                "SIGTERM is put off until a standby is complete, at most {} s: without it no pod could start here",
                at_most.as_secs()
            ),
            Self::NotReady { standby } => {
                write!(f, "the standby {standby} did not say that it is ready: asking the next")
            }
            Self::Drains { successor: Some(standby) } => write!(f, "draining; {standby} takes over"),
            Self::Drains { successor: None } => write!(f, "draining; nobody takes over now"),
            Self::TakesBack => write!(f, "the standby that was to take over is gone: serving again"),
            Self::LockReplaced => write!(
                f,
                "the node lock's path names another file than the one this agent locked (removed by hand?): draining and \
                 ending, so that one agent owns the node"
            ),
        }
    }
}

fn name(socket: Socket) -> &'static str {
    match socket {
        Socket::Cni => "CNI",
        Socket::Handover => "hand-over",
        Socket::Xds => "xDS",
    }
}
