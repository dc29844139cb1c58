//! Which entry is wanted: the wanted state's, or while that cannot be had the one last observed healthy (I10, C03).

use aether_domain::chain::Healthy;
use aether_domain::format::{self, Parsed};
use aether_domain::ids::InstallId;
use aether_domain::paths;
use aether_domain::wanted::{self, Wanted};

use crate::chain::Want;
use crate::own::OwnEntry;

/// The file of the wanted state, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedFile {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// There is none.
    Missing,
    /// It could not be read: why.
    Unread(String),
}

/// What is wanted now, and by which install.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// What a list must hold to be right.
    pub want: Want,
    /// What is put into a list that holds no entry of ours; `None` where none is known.
    pub put_back: Option<OwnEntry>,
    /// SHA-256 of the plugin's binary, where it is known and ours to restore.
    pub plugin_sha256: Option<String>,
    /// The install that wants it.
    pub install_id: Option<InstallId>,
}

/// What is wanted by this file, where `last` was observed healthy.
pub fn resolve(file: &WantedFile, last: Option<&Healthy>) -> Resolved {
    let last_entry = last.and_then(|last| OwnEntry::parse(last.entry.to_string().as_bytes()).ok());
    let why = match file {
        WantedFile::Missing => format!("{} is missing", paths::WANTED),
        WantedFile::Unread(why) => why.clone(),
        WantedFile::Bytes(bytes) => match format::parse::<Wanted>(bytes, wanted::READER) {
            // A newer program's: any entry of ours is right, and which binary it wants cannot be told.
            Parsed::Newer(_) => {
                return Resolved {
                    want: Want::Newer,
                    put_back: last_entry,
                    plugin_sha256: None,
                    install_id: None,
                };
            }
            Parsed::Damaged(how) => format!("{} is damaged: {how}", paths::WANTED),
            Parsed::Good(wanted) => match OwnEntry::parse(wanted.entry.to_string().as_bytes()) {
                Ok(entry) => {
                    return Resolved {
                        want: Want::Entry(entry.clone()),
                        put_back: Some(entry),
                        plugin_sha256: Some(wanted.plugin_sha256),
                        install_id: Some(wanted.install_id),
                    };
                }
                Err(error) => format!("{} is damaged: {error}", paths::WANTED),
            },
        },
    };
    let want = match &last_entry {
        Some(entry) => Want::Entry(entry.clone()),
        None => Want::Nothing(format!("{why}, and no entry of ours was observed healthy on this node")),
    };
    Resolved {
        want,
        plugin_sha256: last.filter(|_| last_entry.is_some()).and_then(|last| last.plugin_sha256.clone()),
        install_id: last.filter(|_| last_entry.is_some()).and_then(|last| last.install_id.clone()),
        put_back: last_entry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn healthy(entry: &str) -> Healthy {
        Healthy::new(serde_json::from_str(entry).expect("JSON"), Some("ab".into()), None, 1)
    }

    const OLD: &str = r#"{"type":"aether-cni","v":1}"#;

    #[test]
    fn c03_a_wanted_state_comes_before_what_was_observed() {
        let bytes = br#"{"format":1,"oldestReader":1,"entry":{"type":"aether-cni","v":2},"pluginSha256":"cd","installId":"m/2","firstInstalled":1}"#;
        let seen = resolve(&WantedFile::Bytes(bytes.to_vec()), Some(&healthy(OLD)));
        assert_eq!(seen.put_back.expect("an entry").text(), br#"{"type":"aether-cni","v":2}"#);
        assert_eq!(seen.plugin_sha256.as_deref(), Some("cd"));
    }

    #[test]
    fn c03_a_wiped_directory_is_repaired_with_what_was_observed_healthy() {
        for file in [WantedFile::Missing, WantedFile::Bytes(b"{".to_vec()), WantedFile::Unread("no".into())] {
            let seen = resolve(&file, Some(&healthy(OLD)));
            assert!(matches!(seen.want, Want::Entry(_)), "{file:?}");
            assert_eq!(seen.plugin_sha256.as_deref(), Some("ab"));
            assert!(matches!(resolve(&file, None).want, Want::Nothing(_)), "{file:?}");
        }
        assert!(resolve(&WantedFile::Missing, Some(&healthy(r#"{"type":"x"}"#))).put_back.is_none());
    }

    #[test]
    fn c03_a_newer_wanted_state_lets_only_a_strip_be_repaired_and_no_binary() {
        let newer = WantedFile::Bytes(br#"{"format":9,"oldestReader":9}"#.to_vec());
        let seen = resolve(&newer, Some(&healthy(OLD)));
        assert!(matches!(seen.want, Want::Newer));
        assert!(seen.put_back.is_some() && seen.plugin_sha256.is_none());
    }
}
