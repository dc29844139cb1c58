//! Groups of the machine's memory controller, in which processes are killed for want of memory.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::node::Node;

/// Where the controller is with cgroup v1, and where all of them are with v2.
const V1: &str = "/sys/fs/cgroup/memory";
const V2: &str = "/sys/fs/cgroup";
/// The limit, in bytes: a page.
const LIMIT: &str = "4096";

impl Node {
    /// A group below that of the node's pods, whose processes die with the next page they ask for. The node's cleaner removes
    /// it.
    pub(crate) fn memory_group(&self, name: &str) -> anyhow::Result<PathBuf> {
        let (root, limit) =
            if Path::new(V1).is_dir() { (V1, "memory.limit_in_bytes") } else { (V2, "memory.max") };
        let parent = Path::new(root).join(self.cgroup().trim_start_matches('/'));
        let group = parent.join(name);
        std::fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
        if root == V2 {
            for above in [Path::new(V2), &parent] {
                let control = above.join("cgroup.subtree_control");
                std::fs::write(&control, "+memory")
                    .with_context(|| format!("cannot write {}", control.display()))?;
            }
        }
        let limit = group.join(limit);
        std::fs::write(&limit, LIMIT).with_context(|| format!("cannot write {}", limit.display()))?;
        Ok(group)
    }
}
