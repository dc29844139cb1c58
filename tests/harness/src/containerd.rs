//! Which containerd a node runs: its programs, its configuration, its CNI plugins.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::tools;

/// The containerd of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Containerd {
    /// Debian's 1.6 (libcni 1.1) with Debian's CNI plugins.
    V1,
    /// 2.4 (libcni 1.3), built from its Go module, with CNI plugins 1.10.
    V2,
}

const APT_CONTAINERD: &str = "apt-get install containerd";
const APT_PLUGINS: &str = "apt-get install containernetworking-plugins";
const XTASK_TOOLS: &str = "cargo xtask tools";

impl Containerd {
    /// Both.
    pub const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// The name that people know.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "containerd 1.6 (Debian)",
            Self::V2 => "containerd 2.4 (built)",
        }
    }

    /// The directory of its programs inside the node; it comes first in the node's PATH.
    pub(crate) fn programs(self) -> &'static str {
        match self {
            Self::V1 => "/usr/bin",
            Self::V2 => "/mnt/tools/containerd-2",
        }
    }

    /// The configuration. `restrict_oom_score_adj`: a root without `CAP_SYS_RESOURCE` cannot start pods without it.
    /// `disable_cgroup`, which 2 no longer has: nothing is made in the machine's cgroup tree.
    pub(crate) fn config(self) -> &'static str {
        match self {
            Self::V1 => {
                r#"version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_tcp_service = true
  disable_cgroup = true
"#
            }
            Self::V2 => {
                r"version = 3
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'localhost/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
"
            }
        }
    }

    /// The CNI plugins that belong to it, and flannel's, which is the same for both.
    pub(crate) fn plugins(self) -> Vec<(PathBuf, &'static str)> {
        let (dir, remedy) = match self {
            Self::V1 => (PathBuf::from("/usr/lib/cni"), APT_PLUGINS),
            Self::V2 => (tools::built().join("cni-plugins"), XTASK_TOOLS),
        };
        let mut plugins: Vec<_> =
            ["bridge", "host-local", "loopback", "portmap"].map(|name| (dir.join(name), remedy)).into();
        plugins.push((tools::built().join("flannel/flannel"), XTASK_TOOLS));
        plugins
    }

    /// Every file that must be there, with what brings it.
    pub(crate) fn files(self) -> Vec<(PathBuf, &'static str)> {
        let mut files = self.plugins();
        let programs = ["containerd", "containerd-shim-runc-v2", "ctr"];
        match self {
            Self::V1 => {
                files.extend(programs.map(|name| (PathBuf::from("/usr/bin").join(name), APT_CONTAINERD)));
            }
            Self::V2 => {
                files.extend(
                    programs.map(|name| (tools::built().join("containerd-2").join(name), XTASK_TOOLS)),
                );
            }
        }
        files.push((tools::built().join("pause/pause"), XTASK_TOOLS));
        files
    }
}
