//! Time as an input, and the numbers by which an answer finds its question.

use std::time::Duration;

/// A moment on one monotonic clock of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The moment `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// This moment and `wait` more.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long it has been since `earlier`; nothing where that is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

number! {
    /// One attachment of this agent to an owner; the machine numbers them, so that a late answer is known as such.
    Attach
}
number! {
    /// One look at lock and paths; the machine numbers them.
    Look
}
number! {
    /// One drain; the machine numbers them, since a drain may be taken back and begin anew.
    Round
}
number! {
    /// One standby's connection to this owner; the shell numbers them.
    Peer
}
number! {
    /// The listeners that came with one greeting; the shell numbers them.
    Batch
}
