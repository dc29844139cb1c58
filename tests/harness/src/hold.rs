//! `hold`: a bare node that lives by this process, to look at how it dies.

use aether_harness::{Containerd, Node, Options};

use crate::report::line;

/// Keeps a node until standard input ends.
pub(crate) async fn run(containerd: Containerd) -> anyhow::Result<()> {
    let node = Node::start(Options::flannel(containerd)).await?;
    line(&format!("{} {}", node.pid(), node.dir().display()));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}
