//! `down`: removes the node and says what went.

use std::path::Path;

use aether_harness::Node;

use crate::report;

/// Removes the node in `dir`; that there is none is no error.
pub(crate) fn run(dir: &Path) -> anyhow::Result<()> {
    let Some(node) = Node::find(dir)? else {
        if Node::remove_dead(dir)? {
            report::line(&format!("removed {}, left by a node that no longer lives", dir.display()));
        } else {
            report::line(&format!("no node is up in {}; nothing to remove", dir.display()));
        }
        return Ok(());
    };
    let (pid, processes, mounts) = (node.pid(), node.processes()?, node.mounts()?);
    let residue = node.residue()?;
    node.remove()?;
    report::line(&format!("removed the node of pid {pid}:"));
    report::line(&format!("  {} processes: {}", processes.len(), summary(processes)));
    report::line(&format!("  its network namespace and {} of pods", residue.netns.len()));
    report::line(&format!("  {mounts} mounts, which only it could see"));
    report::line(&format!("  {}", dir.display()));
    Ok(())
}

/// Names with their counts: `containerd, pause (2)`.
fn summary(names: Vec<String>) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for name in names {
        *counts.entry(name).or_insert(0) += 1;
    }
    let show = |(name, count): (String, i32)| if count == 1 { name } else { format!("{name} ({count})") };
    counts.into_iter().map(show).collect::<Vec<_>>().join(", ")
}
