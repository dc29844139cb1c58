//! A DEL that found no agent, written down by the plugin for the next owner (K07).

use serde::{Deserialize, Serialize};

use crate::clock::Stamp;
use crate::format::Format;
use crate::ids::{NetworkName, RequestId};
use crate::key::Key;

/// The version of the tombstone format that this code reads and writes.
pub const READER: u32 = 1;

/// One DEL to be applied. Keys and their meaning: `agent-core/docs/formats.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// Container id and interface.
    #[serde(flatten)]
    pub key: Key,
    /// The list's name; absent when the DEL could not read its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkName>,
    /// When the DEL began.
    pub started: Stamp,
    /// The DEL's request id.
    pub request_id: RequestId,
}

impl Tombstone {
    /// `<key>.<boottime in ns, 20 digits>`: two DELs of one key never share a file, and they sort by time.
    pub fn file_name(&self) -> String {
        format!("{}.{:020}", self.key.file_stem(), self.started.nanos)
    }
}
