//! Faults that are built in on purpose: with each the simulation must find a violation.

use std::fmt;
use std::str::FromStr;

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The owner lets the lock go when it begins to drain (T07).
    LockBeforeFlush,
    /// An heir accepts calls before its tombstones are applied and its records reconciled (T05).
    ServeBeforeReconcile,
    /// An heir serves what it had read as a standby (T05, S03).
    ReconcileSkipped,
    /// An ADD is answered before its record is durable (S01).
    AcknowledgedBeforeDurable,
    /// An agent unlinks the socket's path at its end, whosever it is (T08).
    UnlinkOfAStrangersPath,
    /// A standby binds the socket when it is complete (T03).
    StandbyBindsEarly,
    /// A standby tries for the lock once when the owner's connection closes (T13).
    LockTriedOnce,
    /// A drain is not taken back when the chosen standby dies (T07).
    NoTakeBack,
    /// A draining owner closes its listener at once (T07).
    DrainClosesTheListener,
    /// An heir serves on its duplicates without a look at the path (T13).
    StaleDuplicates,
    /// An heir renames over whoever listens (T06).
    PredecessorNotWaitedFor,
    /// An owner never looks whether its lock is still one (T01).
    LockNeverChecked,
    /// A tombstone removes a record that is newer (K07).
    TombstoneIgnoresStamp,
    /// Nobody looks for tombstones while an owner serves (K07).
    NoTombstoneWatch,
    /// An ADD whose caller has gone is recorded, and DELs are not remembered (K07, K16).
    CallerNotLookedAt,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::LockBeforeFlush,
        Self::ServeBeforeReconcile,
        Self::ReconcileSkipped,
        Self::AcknowledgedBeforeDurable,
        Self::UnlinkOfAStrangersPath,
        Self::StandbyBindsEarly,
        Self::LockTriedOnce,
        Self::NoTakeBack,
        Self::DrainClosesTheListener,
        Self::StaleDuplicates,
        Self::PredecessorNotWaitedFor,
        Self::LockNeverChecked,
        Self::TombstoneIgnoresStamp,
        Self::NoTombstoneWatch,
        Self::CallerNotLookedAt,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LockBeforeFlush => "lock-before-flush",
            Self::ServeBeforeReconcile => "serve-before-reconcile",
            Self::ReconcileSkipped => "reconcile-skipped",
            Self::AcknowledgedBeforeDurable => "acknowledged-before-durable",
            Self::UnlinkOfAStrangersPath => "unlink-of-a-strangers-path",
            Self::StandbyBindsEarly => "standby-binds-early",
            Self::LockTriedOnce => "lock-tried-once",
            Self::NoTakeBack => "no-take-back",
            Self::DrainClosesTheListener => "drain-closes-the-listener",
            Self::StaleDuplicates => "stale-duplicates",
            Self::PredecessorNotWaitedFor => "predecessor-not-waited-for",
            Self::LockNeverChecked => "lock-never-checked",
            Self::TombstoneIgnoresStamp => "tombstone-ignores-stamp",
            Self::NoTombstoneWatch => "no-tombstone-watch",
            Self::CallerNotLookedAt => "caller-not-looked-at",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        let all = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|fault| fault.name() == name);
        found.ok_or_else(|| format!("there is no fault {name:?}; there are: {}", all()))
    }
}
