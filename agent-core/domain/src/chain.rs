//! What a look at the list found (C01).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::format::Format;
use crate::ids::InstallId;

/// The chain's state. Everything but [`State::Chained`] and [`State::Uninstalled`] counts as not chained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum State {
    /// The list that the runtime would load holds exactly one entry of ours, equal to the wanted one.
    Chained,
    /// The list holds no entry of ours.
    Stripped,
    /// Ours is there but altered or doubled, or in a drop-in.
    Drifted {
        /// How it differs.
        how: String,
    },
    /// No file that a runtime would load.
    NoList,
    /// The file that the runtime would load is one it refuses, or holds no list.
    Invalid {
        /// Line, column and reason.
        why: String,
    },
    /// The marker stands: nothing is wanted.
    Uninstalled,
    /// It could not be told.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl State {
    /// The state's stable name, used in metrics, logs and `aetherctl`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Chained => "chained",
            Self::Stripped => "stripped",
            Self::Drifted { .. } => "drifted",
            Self::NoList => "no-list",
            Self::Invalid { .. } => "invalid",
            Self::Uninstalled => "uninstalled",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// All names, for a metric that has one series a state.
    pub const NAMES: [&'static str; 7] =
        ["chained", "stripped", "drifted", "no-list", "invalid", "uninstalled", "unknown"];
}

/// What was last observed healthy, kept in the state directory (C03): a node whose `net.d` was wiped is repaired with it.
/// Keys and their meaning: `agent-core/docs/formats.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Healthy {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// The entry of ours that stood in the list.
    pub entry: Value,
    /// SHA-256 of the plugin's binary, lower-case hex, where it was the wanted one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_sha256: Option<String>,
    /// The install that had written it, where the wanted state told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<InstallId>,
    /// Seconds since 1970 (UTC) when it was first observed so.
    pub observed_at: u64,
}

impl Healthy {
    /// The version of the format that this code reads and writes.
    pub const READER: u32 = 1;

    /// Observed at this time.
    pub fn new(
        entry: Value,
        plugin_sha256: Option<String>,
        install_id: Option<InstallId>,
        observed_at: u64,
    ) -> Self {
        Self { format: Format::V1, entry, plugin_sha256, install_id, observed_at }
    }

    /// Whether both say the same, whenever it was observed.
    pub fn says_the_same(&self, other: &Self) -> bool {
        Self { observed_at: other.observed_at, format: other.format, ..self.clone() } == *other
    }
}
