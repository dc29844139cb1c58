//! The kinds of modules.

use serde::Deserialize;

/// What a module is for; decides what it must export and what it can be granted at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// Asked about each pod at ADD.
    PodPolicy,
    /// Puts the agent's entry back into the node's list.
    ConflistReassert,
    /// Decides when the not-ready taint may go.
    TaintGate,
    /// Decides when observed upstreams are written out.
    UpstreamFlush,
}

impl World {
    /// All of them, behaviours in the order in which a takeover enables them.
    pub const ALL: [Self; 4] =
        [Self::ConflistReassert, Self::TaintGate, Self::UpstreamFlush, Self::PodPolicy];

    /// The name, as `module.toml` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PodPolicy => "pod-policy",
            Self::ConflistReassert => "conflist-reassert",
            Self::TaintGate => "taint-gate",
            Self::UpstreamFlush => "upstream-flush",
        }
    }

    /// The WIT interface that a module of this world exports, without its version.
    pub fn export(self) -> &'static str {
        match self {
            Self::PodPolicy => "aether:policy/pods",
            Self::ConflistReassert | Self::TaintGate | Self::UpstreamFlush => "aether:behaviour/lifecycle",
        }
    }
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
