//! What the host of modules needs from the agent: views that are cheap to read, and hands.

use std::sync::Arc;

use crate::action::{Action, Outcome, Permit, TaintEffect};
use crate::manifest::Name;

/// The agent, as modules see it. Views are called while a guest waits and its deadline runs: they must only read memory
/// that something else keeps fresh, never a disk or a network.
pub trait Ports: Send + Sync + 'static {
    /// The node's CNI configuration, as it was last looked at.
    fn conflist(&self) -> Arc<ConflistView>;
    /// The node's taints and readiness.
    fn node(&self) -> NodeView;
    /// How many upstreams are known, and how many of them wait to be written.
    fn upstreams(&self) -> UpstreamsSummary;
    /// At most `limit` upstreams in name order, after the name `after`.
    fn upstreams_page(&self, after: Option<&str>, limit: usize) -> Vec<Upstream>;
    /// Performs an action whose grant, ownership and digest were just checked. Called on the module's own thread and
    /// may block; whatever waits inside asks `permit` again before it acts. When it returns, the view shows what it did,
    /// or what stood in its way: a module that looks at an older state would ask for the same again.
    fn perform(&self, action: &Action, permit: &Permit) -> Outcome;
    /// A module, or the host about a module, has something for a person.
    fn event(&self, event: ModuleEvent);
    /// A behaviour has come, gone or changed its state: the host may have another answer to whether the built-in ones are
    /// ready. Called while that behaviour is locked: must not call the host.
    fn behaviours_changed(&self);
}

/// An event for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleEvent {
    /// The module.
    pub module: Name,
    /// One word in `CamelCase`.
    pub reason: String,
    /// The object.
    pub about: String,
    /// What is said.
    pub message: String,
}

/// The node's CNI configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConflistView {
    /// The chain's state, by its stable name.
    pub state: String,
    /// How it differs, or why it cannot be told.
    pub detail: String,
    /// The file that the runtime would load.
    pub file: Option<String>,
    /// The plugin's binary.
    pub binary: Binary,
    /// Files that a runtime looks at, in its order.
    pub files: Vec<ConflistFile>,
    /// The entry to put back, as JSON text; none once uninstalled, or where none is known.
    pub wanted: Option<Vec<u8>>,
}

/// The plugin's binary against the wanted hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Binary {
    /// It is the wanted one.
    Right,
    /// It is another one.
    Wrong,
    /// There is none.
    Missing,
    /// It cannot be told.
    #[default]
    Unknown,
}

/// One file of the CNI configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflistFile {
    /// Its name.
    pub name: String,
    /// SHA-256 of its bytes, in lower-case hex.
    pub digest: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Its owner.
    pub uid: u32,
    /// Milliseconds since 1970 (UTC) of its last change.
    pub modified: u64,
}

/// The node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeView {
    /// Its taints.
    pub taints: Vec<Taint>,
    /// For how long the agent has owned it, in milliseconds.
    pub owned_for: Option<u64>,
    /// What readiness is made of.
    pub conditions: Vec<Condition>,
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Option<String>,
    /// Its effect.
    pub effect: TaintEffect,
}

/// One part of readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name: `cni-serving`, `chained`, `first-snapshot`, ...
    pub name: String,
    /// Whether it is so; `None` where that cannot be told.
    pub state: Option<bool>,
    /// For how long, in milliseconds.
    pub held_for: u64,
}

/// What is known of upstreams. Times are milliseconds since 1970 (UTC).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamsSummary {
    /// How many there are.
    pub total: u32,
    /// How many wait to be written.
    pub dirty: u32,
    /// Since when the oldest of these waits.
    pub oldest_dirty: Option<u64>,
    /// When they were last written.
    pub last_flush: Option<u64>,
}

/// One upstream. Times are milliseconds since 1970 (UTC).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// When it was first seen.
    pub first_seen: u64,
    /// When it was last seen.
    pub last_seen: u64,
    /// How often it was seen.
    pub hits: u64,
}
