//! The modules that are part of the agent: `conflist-reassert`, `taint-gate`, `upstream-flush`. They are data: whoever
//! puts a program together hands them to the host of modules.

/// A module, built and compiled when this crate was.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// Its name.
    pub name: &'static str,
    /// Its `module.toml`.
    pub manifest: &'static str,
    /// SHA-256 of its component, in lower-case hex.
    pub digest: &'static str,
    /// Its component, compiled for this target by the engine of `aether-module-host`.
    pub artefact: &'static [u8],
}

/// Each of them.
pub const MODULES: &[Module] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
