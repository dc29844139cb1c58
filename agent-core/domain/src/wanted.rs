//! The wanted state that the installer keeps beside the list (I10), and the marker of an uninstall (I01).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::format::Format;
use crate::ids::InstallId;

/// The version of both formats that this code reads and writes.
pub const READER: u32 = 1;

/// What `cni-install` wants on the node. Keys and their meaning: `agent-core/docs/formats.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// The entry alone, as it stands in the list.
    pub entry: Value,
    /// SHA-256 of the plugin binary, lower-case hex.
    pub plugin_sha256: String,
    /// Which install wrote this.
    pub install_id: InstallId,
    /// Seconds since 1970 (UTC) of the first install on this node; kept by every later one.
    pub first_installed: u64,
}

/// The file that says: uninstalled (I01).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Marker {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// The install that was removed; `install` of this or an earlier id is refused. Absent when none was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install_id: Option<InstallId>,
    /// Seconds since 1970 (UTC) of the uninstall.
    pub uninstalled_at: u64,
}
