//! The node itself: that it starts under both containerds, carries pods, and leaves nothing.

use aether_harness::cri::{HostPort, Pod, Protocol};
use aether_harness::{Containerd, Node, Options};

async fn carries_a_pod(containerd: Containerd) -> anyhow::Result<()> {
    let mut node = Node::start(Options::flannel(containerd)).await?;

    let cri = node.cri();
    node.loaded(&["flannel", "portmap"]).await?;
    let ports = vec![HostPort { host: 30080, container: 8080, protocol: Protocol::Tcp }];
    let id = cri.run(&Pod { ports, ..Pod::named("prod", "web-0") }).await?;

    let status = cri.status(&id).await?;
    assert!(status.is_ready() && status.address().starts_with("10.244.1."), "{status:?}");
    let residue = node.residue()?;
    assert_eq!((residue.veths.len(), residue.addresses.len()), (1, 1), "{residue:?}");
    assert!(!residue.port_maps.is_empty(), "{residue:?}");
    node.stop_containerd()?;
    node.start_containerd().await?;
    assert!(cri.status(&id).await?.is_ready());
    cri.stop_and_remove(&id).await?;
    let residue = node.residue()?;
    assert!(residue.is_nothing(), "{residue:?}");
    let (dir, pid) = (node.dir().to_path_buf(), node.pid());
    drop(node);

    assert!(!dir.exists() && !std::path::Path::new(&format!("/proc/{pid}")).exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_containerd_1_carries_a_pod_and_leaves_nothing() -> anyhow::Result<()> {
    carries_a_pod(Containerd::V1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_containerd_2_carries_a_pod_and_leaves_nothing() -> anyhow::Result<()> {
    carries_a_pod(Containerd::V2).await
}
