//! Where platforms keep CNI lists and plugins (I13). Any other place goes by flags.

use std::path::{Path, PathBuf};

use aether_domain::paths;
use clap::ValueEnum;

/// A platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// kubeadm, kind, EKS, AKS, Talos, RKE2 and most others: `/etc/cni/net.d`, `/opt/cni/bin`.
    Default,
    /// k3s: below `/var/lib/rancher/k3s`; of its two directories of plugins the first that exists.
    #[value(name = "k3s")]
    K3s,
    /// GKE: `/etc/cni/net.d`, `/home/kubernetes/bin`.
    Gke,
}

impl Profile {
    /// The directory of lists.
    pub fn conf_dir(self) -> &'static Path {
        Path::new(match self {
            Self::Default | Self::Gke => paths::CNI_CONF_DIR,
            Self::K3s => "/var/lib/rancher/k3s/agent/etc/cni/net.d",
        })
    }

    /// The directories of plugins, the preferred one first.
    pub fn bin_dirs(self) -> &'static [&'static str] {
        match self {
            Self::Default => &[paths::CNI_BIN_DIR],
            // Since 2024 the first; older releases link `current` to a directory named by a hash.
            Self::K3s => &["/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/data/current/bin"],
            Self::Gke => &["/home/kubernetes/bin"],
        }
    }

    /// The directory of plugins to use: the first that `exists`, else the preferred one, which the messages then name.
    pub fn bin_dir(self, exists: impl Fn(&Path) -> bool) -> PathBuf {
        let dirs = || self.bin_dirs().iter().map(Path::new);
        dirs()
            .find(|dir| exists(dir))
            .or_else(|| dirs().next())
            .unwrap_or(Path::new(paths::CNI_BIN_DIR))
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i13_each_profile_names_its_platforms_directories() {
        let none = |_: &Path| false;
        let of = |profile: Profile| (profile.conf_dir().to_owned(), profile.bin_dir(none));
        assert_eq!(of(Profile::Default), ("/etc/cni/net.d".into(), "/opt/cni/bin".into()));
        assert_eq!(of(Profile::Gke), ("/etc/cni/net.d".into(), "/home/kubernetes/bin".into()));
        let k3s = "/var/lib/rancher/k3s";
        assert_eq!(
            of(Profile::K3s),
            (format!("{k3s}/agent/etc/cni/net.d").into(), format!("{k3s}/data/cni").into())
        );
    }

    #[test]
    fn i13_an_older_k3s_has_its_plugins_below_current() {
        let old = Path::new("/var/lib/rancher/k3s/data/current/bin");
        assert_eq!(Profile::K3s.bin_dir(|dir| dir == old), old);
        assert_eq!(Profile::K3s.bin_dir(|_| true), Path::new("/var/lib/rancher/k3s/data/cni"));
    }
}
