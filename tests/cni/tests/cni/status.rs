//! STATUS, which only containerd 2 asks, and only for lists that say 1.1.0.

use std::time::{Duration, Instant};

use aether_harness::{Containerd, Options, Signal, wait};
use aether_test_cni::{BRIDGE_CHAIN, Rig, SOON};
use anyhow::ensure;

async fn ready(rig: &Rig, expected: bool) -> anyhow::Result<String> {
    wait::until(&format!("a network whose readiness is {expected}"), SOON, async || {
        let status = rig.cri.runtime_status().await?;
        let network = status.network().cloned().unwrap_or_default();
        ensure!(network.status == expected, "{network:?}");
        Ok(network.message)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn k10_a_node_whose_agent_is_away_or_hangs_is_not_ready_and_says_why() -> anyhow::Result<()> {
    let rig = Rig::bare(Options::bridge(Containerd::V2, Some("1.1.0"))).await?;
    assert!(rig.cri.runtime_status().await?.network_ready());
    rig.node.install(&[])?;
    rig.node.loaded(&BRIDGE_CHAIN).await?;
    let message = ready(&rig, false).await?;
    assert!(message.contains("/run/aether/cni.sock"), "{message}");

    let mut agent = rig.node.start_agent().await?;
    ready(&rig, true).await?;

    agent.signal(Signal::STOP);
    let begin = Instant::now();
    let message = ready(&rig, false).await?;
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert!(message.contains("aether"), "{message}");
    agent.signal(Signal::CONT);
    ready(&rig, true).await?;

    agent.kill();
    ready(&rig, false).await?;
    let _agent = rig.node.start_agent().await?;
    ready(&rig, true).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn k10_lists_of_older_versions_are_never_asked_and_stay_ready() -> anyhow::Result<()> {
    for containerd in Containerd::ALL {
        let rig = Rig::installed(containerd, &[]).await?;
        assert!(rig.cri.runtime_status().await?.network_ready());
    }
    Ok(())
}
