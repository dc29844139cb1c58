//! Where the watcher looks, and how often.

use std::path::PathBuf;
use std::time::Duration;

use aether_domain::limits::CHAIN_POLL;

use crate::pace::Limits;

/// Where to look, and how often.
#[derive(Debug, Clone)]
pub struct Config {
    /// The runtime's directory of CNI configurations.
    pub conf_dir: PathBuf,
    /// The state directory, where the marker of an uninstall is.
    pub state_dir: PathBuf,
    /// The plugin's binary.
    pub plugin: PathBuf,
    /// How often to look without an event.
    pub poll: Duration,
    /// How often to look for events.
    pub events: Limits,
}

impl Config {
    /// The usual times (C01) for these places.
    pub fn new(conf_dir: PathBuf, state_dir: PathBuf, plugin: PathBuf) -> Self {
        Self { conf_dir, state_dir, plugin, poll: CHAIN_POLL, events: Limits::default() }
    }
}
