//! What a look at the list found (C01).

use serde::{Deserialize, Serialize};

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
