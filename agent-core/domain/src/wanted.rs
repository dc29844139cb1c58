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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Parsed, parse};

    /// Found by `cargo xtask fuzz`: read with the last digit off, an entry was another one each time that it was written.
    #[test]
    fn i10_s02_a_number_of_the_entry_is_the_same_after_it_was_read() {
        for number in
            ["518446744073701551615", "0.1", "2.5", "5.184467440737016e+20", "1.7976931348623157e308"]
        {
            let file = format!(
                r#"{{"format":1,"oldestReader":1,"entry":{{"addDeadlineSeconds":{number}}},"pluginSha256":"00","installId":"m/1","firstInstalled":1}}"#
            );
            let Parsed::Good(wanted) = parse::<Wanted>(file.as_bytes(), READER) else { panic!("{file}") };
            let deadline = wanted.entry["addDeadlineSeconds"].as_f64();
            assert_eq!(deadline, number.parse().ok(), "{number}");
            let written = serde_json::to_vec(&wanted).expect("it is written");
            assert_eq!(parse::<Wanted>(&written, READER), Parsed::Good(wanted), "{number}");
        }
    }
}
