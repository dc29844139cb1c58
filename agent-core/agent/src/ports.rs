//! What joins the adapters, none of which knows another: each port of one, implemented on the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aether_chain_watch::{Cause, Lost, Mode, Observation, Reporter};
use aether_cni_server::{Answered, Calls};
use aether_domain::chain::State;
use aether_domain::format::{self, Parsed};
use aether_domain::pods::{FirstInstall, NetnsLook, Seen};
use aether_domain::wanted::{self, Wanted};
use aether_domain::{limits, paths};
use aether_durable::read;
use aether_telemetry::Metrics;

/// Looks at namespaces for the sweep (S06): only what certainly is gone counts as missing.
#[derive(Debug)]
pub(crate) struct Namespaces;

impl NetnsLook for Namespaces {
    fn look(&self, path: &str) -> Seen {
        judge(path, aether_netns::look(Path::new(path)))
    }
}

fn judge(path: &str, seen: aether_netns::Seen) -> Seen {
    let unknown = |why: String| Seen::Unknown { why };
    match seen {
        aether_netns::Seen::Namespace { inode, .. } => Seen::Namespace { inode },
        aether_netns::Seen::Missing => Seen::Missing,
        aether_netns::Seen::NotANamespace => {
            unknown(format!("{path} is no namespace here: its mount is not seen"))
        }
        aether_netns::Seen::ParentMissing => unknown(format!("the directory of {path} is not seen here")),
        aether_netns::Seen::Error(error) => unknown(format!("cannot look at {path}: {error}")),
    }
}

/// Reads from the wanted state when Aether was first installed (K09).
#[derive(Debug)]
pub(crate) struct WantedState(pub(crate) PathBuf);

impl FirstInstall for WantedState {
    fn first_installed(&self) -> Option<u64> {
        let bytes = read::bounded(&self.0.join(paths::WANTED), limits::STATE_FILE_MAX).ok()??;
        match format::parse::<Wanted>(&bytes, wanted::READER) {
            Parsed::Good(wanted) => Some(wanted.first_installed),
            Parsed::Newer(_) | Parsed::Damaged(_) => None,
        }
    }
}

/// Counts CNI calls.
#[derive(Debug)]
pub(crate) struct CountCalls(pub(crate) Arc<Metrics>);

impl Calls for CountCalls {
    fn answered(&self, call: &Answered) {
        self.0.cni_answered(call.command.name(), call.code, call.took);
    }

    fn peer_refused(&self) {
        self.0.cni_refused();
    }
}

/// Counts looks at the list.
#[derive(Debug)]
pub(crate) struct CountLooks(pub(crate) Arc<Metrics>);

impl Reporter for CountLooks {
    fn looked(&self, cause: Cause, seen: &Observation) {
        self.0.chain_checked(cause.name(), seen.state.name(), &State::NAMES, seen.checked_at);
        self.0.chain_watch_mode(seen.mode.name(), &Mode::NAMES);
    }

    fn lost(&self, why: Lost) {
        self.0.chain_watch_lost(why.name());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s06_a_namespace_whose_mount_is_not_seen_is_unknown_and_never_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        std::fs::write(path("plain"), "").unwrap();
        assert!(matches!(Namespaces.look(&path("plain")), Seen::Unknown { .. }));
        assert!(matches!(Namespaces.look(&path("no/such")), Seen::Unknown { .. }));
        assert_eq!(Namespaces.look(&path("gone")), Seen::Missing);
        assert!(matches!(Namespaces.look("/proc/self/ns/net"), Seen::Namespace { inode } if inode > 0));
        let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert!(matches!(judge("/x", aether_netns::Seen::Error(error)), Seen::Unknown { .. }));
    }

    #[test]
    fn k09_the_first_install_is_read_from_the_wanted_state_and_unknown_without_one() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = WantedState(dir.path().to_owned());
        assert_eq!(wanted.first_installed(), None);
        let file = dir.path().join(paths::WANTED);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(wanted.first_installed(), None);
        let good = r#"{"format":1,"oldestReader":1,"entry":{},"pluginSha256":"","installId":"a","firstInstalled":77}"#;
        std::fs::write(&file, good).unwrap();
        assert_eq!(wanted.first_installed(), Some(77));
    }
}
