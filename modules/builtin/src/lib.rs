//! The modules that are part of the agent: `conflist-reassert`, `taint-gate`, `upstream-flush`.

use aether_module_host::Builtin;

/// Each of them, compiled for this target.
pub const BUILTINS: &[Builtin] = include!(concat!(env!("OUT_DIR"), "/builtins.rs"));
