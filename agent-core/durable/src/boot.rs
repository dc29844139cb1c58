//! The node's clock: which boot this is, and how long it has run.

use std::path::Path;

use aether_domain::clock::{BootId, Stamp};

/// Reads the boot's id.
pub fn id() -> std::io::Result<BootId> {
    std::fs::read_to_string(Path::new(aether_domain::paths::BOOT_ID)).map(|text| BootId::new(&text))
}

/// This moment, in nanoseconds of `CLOCK_BOOTTIME`.
pub fn nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000)
        + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// This moment of this boot.
pub fn now() -> std::io::Result<Stamp> {
    Ok(Stamp::new(id()?, nanos()))
}
