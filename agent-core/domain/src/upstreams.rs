//! The upstreams that the node's pods were seen to use, as they are written out.

use serde::{Deserialize, Serialize};

use crate::format::Format;

/// The version of the format that this code reads and writes.
pub const READER: u32 = 1;

/// `upstreams.json`. Keys and their meaning: `agent-core/docs/formats.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upstreams {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// Each of them, by name.
    pub upstreams: Vec<Upstream>,
}

/// One upstream. Times are milliseconds since 1970 (UTC).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
