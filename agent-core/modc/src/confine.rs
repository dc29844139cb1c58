//! Giving up what a compiler does not need.

use rustix::io::Errno;
use rustix::process::{self, Resource, Rlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// A limit that cannot be set.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}")]
pub(crate) struct ConfineError {
    what: &'static str,
    #[source]
    source: Errno,
}

/// Limits this process for good.
pub(crate) fn confine(memory: u64, cpu_seconds: u64) -> Result<(), ConfineError> {
    let limit = |resource, most: u64, what| {
        // Whoever started it may have been given less; more is not to be had without a privilege.
        let most = process::getrlimit(resource).maximum.map_or(most, |bound| bound.min(most));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        process::setrlimit(resource, limit).map_err(|source| ConfineError { what, source })
    };
    limit(Resource::As, memory, "limit the address space")?;
    limit(Resource::Cpu, cpu_seconds, "limit the processor time")?;
    limit(Resource::Core, 0, "forbid core dumps")?;
    limit(Resource::Fsize, 0, "forbid writing files")?;
    thread::set_no_new_privs(true)
        .map_err(|source| ConfineError { what: "forbid new privileges", source })?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, none).map_err(|source| ConfineError { what: "drop capabilities", source })
}
