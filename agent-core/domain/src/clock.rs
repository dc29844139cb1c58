//! Times that survive a restart of a process but not of the node: a boot's id and the nanoseconds since it.

use serde::{Deserialize, Serialize};

/// The kernel's id of one boot (`/proc/sys/kernel/random/boot_id`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(String);

impl BootId {
    /// The id as read from the kernel; surrounding white space is dropped.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for BootId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A moment on this node: `CLOCK_BOOTTIME` of a boot, in nanoseconds (K07). Moments of two boots have no order that
/// a clock could tell; `later_than` says `None` for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The boot.
    #[serde(rename = "bootId")]
    pub boot: BootId,
    /// Nanoseconds of `CLOCK_BOOTTIME`.
    #[serde(rename = "boottimeNs")]
    pub nanos: u64,
}

impl Stamp {
    /// The moment `nanos` after the start of `boot`.
    pub fn new(boot: BootId, nanos: u64) -> Self {
        Self { boot, nanos }
    }

    /// Whether this moment is after `other`; `None` when they belong to two boots.
    pub fn later_than(&self, other: &Stamp) -> Option<bool> {
        (self.boot == other.boot).then_some(self.nanos > other.nanos)
    }
}
