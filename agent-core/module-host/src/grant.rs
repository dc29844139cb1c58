//! What a module is given (M03): one interface is one grant, and a grant names its objects.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::glob::Glob;
use crate::world::World;

/// One interface that the host offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Log lines under the module's name.
    Log,
    /// The host's clocks.
    Clock,
    /// The module's own series.
    Metrics,
    /// Events for a person.
    Events,
    /// Reading the node's CNI configuration.
    ConflistView,
    /// Staging changes of it.
    ConflistEdit,
    /// Reading the node's taints and readiness.
    NodeView,
    /// Staging the removal of a taint.
    NodeTaint,
    /// Reading observed upstreams.
    UpstreamsView,
    /// Staging their flush.
    UpstreamsEdit,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Log,
        Self::Clock,
        Self::Metrics,
        Self::Events,
        Self::ConflistView,
        Self::ConflistEdit,
        Self::NodeView,
        Self::NodeTaint,
        Self::UpstreamsView,
        Self::UpstreamsEdit,
    ];

    /// The WIT interface, without its version.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Log => "aether:base/log",
            Self::Clock => "aether:base/clock",
            Self::Metrics => "aether:base/metrics",
            Self::Events => "aether:base/events",
            Self::ConflistView => "aether:conflist/view",
            Self::ConflistEdit => "aether:conflist/edit",
            Self::NodeView => "aether:node/view",
            Self::NodeTaint => "aether:node/taint",
            Self::UpstreamsView => "aether:upstreams/view",
            Self::UpstreamsEdit => "aether:upstreams/edit",
        }
    }

    /// How `[grant]` of a `module.toml` gives it; `None` for what every module has.
    pub fn how(self) -> Option<&'static str> {
        match self {
            Self::Log | Self::Clock | Self::Metrics => None,
            Self::Events => Some("events = [\"Reason\"]"),
            Self::ConflistView => Some("conflist.view = [\"*.conflist\"]"),
            Self::ConflistEdit => {
                Some("conflist.edit = [\"*.conflist\"], conflist.derive or conflist.restore-plugin")
            }
            Self::NodeView => Some("node.view = true"),
            Self::NodeTaint => Some("node.remove-taints = [\"key\"]"),
            Self::UpstreamsView => Some("upstreams.view = true"),
            Self::UpstreamsEdit => Some("upstreams.flush = true or upstreams.forget = true"),
        }
    }

    /// Whether a module of this world may have it at all, whatever `module.toml` says.
    pub fn fits(self, world: World) -> bool {
        match self {
            Self::Log | Self::Clock | Self::Metrics => true,
            Self::Events => world != World::PodPolicy,
            Self::ConflistView | Self::ConflistEdit => world == World::ConflistReassert,
            Self::NodeView | Self::NodeTaint => world == World::TaintGate,
            Self::UpstreamsView | Self::UpstreamsEdit => world == World::UpstreamFlush,
        }
    }
}

/// A kind of change that a policy may make to a pod's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// A label on the agent's own record of the pod.
    Label,
}

impl ChangeKind {
    /// The kind as a module writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Label => "label",
        }
    }
}

/// The table `[grant]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Grant {
    /// Kinds of changes that a policy's verdict may carry.
    pub change: BTreeSet<ChangeKind>,
    /// Reasons of events that may be raised.
    pub events: BTreeSet<String>,
    /// The node's CNI configuration.
    pub conflist: ConflistGrant,
    /// The node.
    pub node: NodeGrant,
    /// Observed upstreams.
    pub upstreams: UpstreamsGrant,
}

/// `grant.conflist`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ConflistGrant {
    /// Files that may be read.
    pub view: Vec<Glob>,
    /// Files whose entry of ours may be put back.
    pub edit: Vec<Glob>,
    /// Whether a list may be derived from a single plugin's configuration.
    pub derive: bool,
    /// Whether the plugin's binary may be put back.
    pub restore_plugin: bool,
}

/// `grant.node`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NodeGrant {
    /// Whether taints and readiness may be read.
    pub view: bool,
    /// Keys of taints that may be removed.
    pub remove_taints: BTreeSet<String>,
}

/// `grant.upstreams`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct UpstreamsGrant {
    /// Whether upstreams may be read.
    pub view: bool,
    /// Whether they may be written out.
    pub flush: bool,
    /// Whether they may be forgotten.
    pub forget: bool,
}

impl Grant {
    /// Whether the interface is granted, which is: linked.
    pub fn gives(&self, capability: Capability) -> bool {
        match capability {
            Capability::Log | Capability::Clock | Capability::Metrics => true,
            Capability::Events => !self.events.is_empty(),
            Capability::ConflistView => !self.conflist.view.is_empty(),
            Capability::ConflistEdit => {
                !self.conflist.edit.is_empty() || self.conflist.derive || self.conflist.restore_plugin
            }
            Capability::NodeView => self.node.view,
            Capability::NodeTaint => !self.node.remove_taints.is_empty(),
            Capability::UpstreamsView => self.upstreams.view,
            Capability::UpstreamsEdit => self.upstreams.flush || self.upstreams.forget,
        }
    }

    /// The first capability that is given although the world can never have it.
    pub fn beyond(&self, world: World) -> Option<Capability> {
        Capability::ALL.into_iter().find(|capability| self.gives(*capability) && !capability.fits(world))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m03_a_grant_names_its_objects_and_an_unknown_key_is_answered_with_the_valid_ones() {
        let grant: Grant = toml::from_str("node = { view = true, remove-taints = [\"a\"] }").unwrap();
        assert!(grant.gives(Capability::NodeView) && grant.gives(Capability::NodeTaint));
        assert!(!grant.gives(Capability::ConflistView));
        for (text, words) in [
            ("nodes = 1", "unknown field `nodes`, expected one of `change`, `events`, `conflist`, `node`"),
            ("node = { add-taints = [] }", "unknown field `add-taints`, expected `view` or `remove-taints`"),
            ("change = [\"annotation\"]", "unknown variant `annotation`, expected `label`"),
            ("conflist = { view = [\"../x\"] }", "no pattern for a file name"),
        ] {
            let error = toml::from_str::<Grant>(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn m03_a_policy_can_never_be_given_the_node() {
        let grant: Grant = toml::from_str("node = { view = true }").unwrap();
        assert_eq!(grant.beyond(World::PodPolicy), Some(Capability::NodeView));
        assert_eq!(grant.beyond(World::TaintGate), None);
    }
}
