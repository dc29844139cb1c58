//! What the watcher publishes and reports.

use std::sync::Arc;

use aether_domain::chain::{Healthy, State};
use aether_domain::ids::InstallId;

use crate::binary::Binary;

/// One file that a runtime looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenFile {
    /// Its name.
    pub name: String,
    /// SHA-256 of its bytes, in lower-case hex.
    pub digest: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Its owner.
    pub uid: u32,
    /// Milliseconds since 1970 of its last change.
    pub modified: u64,
}

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel tells of each.
    Inotify,
    /// Only by looking again and again: inotify cannot be had, or the directory is missing.
    Poll,
}

impl Mode {
    /// All names, for a metric with one series a mode.
    pub const NAMES: [&'static str; 2] = ["inotify", "poll"];

    /// The mode's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inotify => "inotify",
            Self::Poll => "poll",
        }
    }
}

/// Why the directory was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// For the first time.
    Start,
    /// The kernel told of a change.
    Event,
    /// It was time.
    Poll,
    /// Somebody who changed something wants to see it ([`crate::Looker`]).
    Asked,
}

impl Cause {
    /// The cause's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Event => "event",
            Self::Poll => "poll",
            Self::Asked => "asked",
        }
    }
}

/// Why events may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Inotify cannot be had.
    Unavailable,
    /// The kernel's queue ran over.
    Overflow,
    /// The directory is another one than the watched.
    Replaced,
}

impl Lost {
    /// The reason's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Overflow => "overflow",
            Self::Replaced => "replaced",
        }
    }
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The chain's state.
    pub state: State,
    /// The name of the file that the runtime would load.
    pub file: Option<String>,
    /// Why this file, or why none.
    pub choice: String,
    /// The list's plugin types, in order.
    pub plugins: Vec<String>,
    /// The files that a runtime looks at, in its order, as far as they could be read.
    pub files: Arc<[SeenFile]>,
    /// The text of the entry to put back; none once uninstalled, where none is known, or where a newer program's wanted
    /// state forbids to alter what stands there.
    pub wanted: Option<Arc<[u8]>>,
    /// What was observed healthy last; none since an uninstall.
    pub healthy: Option<Healthy>,
    /// The hash of the plugin's binary that is wanted.
    pub plugin_sha256: Option<String>,
    /// The plugin's binary against that hash.
    pub binary: Binary,
    /// The wanted state's install id.
    pub install_id: Option<InstallId>,
    /// How changes are noticed.
    pub mode: Mode,
    /// When, in seconds since 1970.
    pub checked_at: u64,
}

impl Observation {
    /// Before the first look.
    pub(crate) fn none_yet() -> Self {
        let state = State::Unknown { why: "it was not looked at yet".to_owned() };
        Self {
            state,
            file: None,
            choice: String::new(),
            plugins: Vec::new(),
            files: Arc::from([]),
            wanted: None,
            healthy: None,
            plugin_sha256: None,
            binary: Binary::Unknown { why: "it was not looked at yet".to_owned() },
            install_id: None,
            mode: Mode::Poll,
            checked_at: 0,
        }
    }
}

/// Is told of every look and loss, one by one: the published observation shows only the latest.
pub trait Reporter: Send + 'static {
    /// A look is over.
    fn looked(&self, cause: Cause, observation: &Observation);
    /// Events may have been lost.
    fn lost(&self, why: Lost);
}
