//! What owner and standby say to each other over `handover.sock` (T13).
//!
//! A standby says [`ToOwner::Hello`] and is greeted. From then on it says when it is complete; the owner tells the newest
//! complete one that it is chosen, asks it "ready?" before it drains, and says "yours" after the flush.

use serde::{Deserialize, Serialize};

use super::{Identity, Socket};

/// The version of the protocol that this code speaks.
pub const VERSION: u32 = 1;
/// The oldest version that it still speaks.
pub const OLDEST: u32 = 1;
/// The longest name of an agent, in bytes.
pub const NAME_MAX: usize = 253;

/// What a standby says to the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToOwner {
    /// Who it is; the first message.
    Hello(Hello),
    /// Its gates have passed (T04).
    Complete,
    /// A gate of it has shut again.
    Incomplete,
    /// It answers "ready?": it is complete and waits for the lock.
    Ready,
    /// It has the lock. An owner that hears this has lost its own: the lock file was removed by hand (T01).
    Locked,
}

/// What the owner says to a standby.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToStandby {
    /// It is attached; duplicates of the named listeners come with this message. Said again when a socket was bound
    /// anew.
    Greeting(Greeting),
    /// It is the one that waits in flock.
    Chosen,
    /// It no longer is.
    NotChosen,
    /// "Ready?": the owner has SIGTERM and would drain.
    Leaving,
    /// The owner has flushed and ends now.
    Yours,
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The newest version of the protocol that it speaks.
    pub version: u32,
    /// The oldest.
    pub oldest: u32,
    /// Its name: the pod's.
    pub name: String,
    /// When it started, in nanoseconds of `CLOCK_BOOTTIME`: the newest complete standby is chosen.
    pub started: u64,
    /// What it is.
    pub role: Role,
}

/// What calls on an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// An agent without the lock.
    Standby,
    /// An agent that got the lock while somebody still listens: whoever greets it has lost the lock to it (T01).
    Heir,
}

/// The owner's answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version that both speak.
    pub version: u32,
    /// The owner's name.
    pub name: String,
    /// The listeners that come along, in the order of their descriptors.
    pub listeners: Vec<Listener>,
}

/// One handed-over listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    /// The socket.
    pub socket: Socket,
    /// What its path named right after it was bound.
    #[serde(flatten)]
    pub identity: Identity,
}

/// The version that two agents speak with each other: the newest that both know.
pub fn common(oldest: u32, newest: u32) -> Option<u32> {
    let version = newest.min(VERSION);
    (version >= oldest && version >= OLDEST).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_two_agents_speak_the_newest_version_that_both_know() {
        assert_eq!(common(1, 1), Some(1));
        assert_eq!(common(1, 9), Some(VERSION));
        assert_eq!(common(VERSION + 1, 9), None);
        assert_eq!(common(0, 0), None);
    }
}
