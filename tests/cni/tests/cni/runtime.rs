//! The runtime and the node end and come back: restarts, kills, a reboot, two nodes on one machine.

use std::time::Duration;

use aether_domain::paths;
use aether_harness::cri::Pod;
use aether_harness::{Containerd, Signal, wait};
use aether_test_cni::{Rig, SOON};
use anyhow::ensure;

async fn s01_k07_records_outlive_restarts_of_the_runtime_and_of_the_agent(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (mut rig, mut agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    let record = rig.record(&id)?;
    rig.node.stop_containerd()?;
    rig.node.start_containerd().await?;
    agent.kill();
    let mut agent = rig.node.start_agent().await?;
    rig.node.kill_containerd()?;
    rig.node.start_containerd().await?;
    agent.terminate(SOON)?;
    let _agent = rig.node.start_agent().await?;
    assert_eq!(rig.record(&id)?, record);
    assert!(rig.cri.status(&id).await?.is_ready());
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn s06_after_a_reboot_the_old_boots_records_are_dropped_before_the_agent_serves(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (mut rig, agent) = Rig::chained(containerd).await?;
    let old = rig.run(&Pod::named("prod", "web-0")).await?;
    rig.reboot().await?;
    drop(agent);
    let _agent = rig.node.start_agent().await?;
    assert!(rig.node.records()?.is_empty(), "a record of another boot was kept");
    let new = rig.run(&Pod { attempt: 1, ..Pod::named("prod", "web-0") }).await?;
    rig.end(&old).await?;
    rig.consistent().await?;
    rig.end(&new).await?;
    rig.nothing_left().await
}

async fn k07_s06_a_del_written_down_before_a_reboot_does_no_harm_after_it(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (mut rig, mut agent) = Rig::chained(containerd).await?;
    let old = rig.run(&Pod::named("prod", "web-0")).await?;
    agent.kill();
    rig.end(&old).await?;
    assert!(!rig.node.tombstones()?.is_empty());
    rig.reboot().await?;
    let _agent = rig.node.start_agent().await?;
    rig.nothing_left().await?;
    let new = rig.run(&Pod { attempt: 1, ..Pod::named("prod", "web-0") }).await?;
    rig.consistent().await?;
    rig.end(&new).await
}

async fn k04_k07_a_runtime_killed_in_the_middle_of_an_add_leaves_nothing_after_the_stop(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let mut rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let agent = rig.node.start_agent().await?;
    agent.signal(Signal::STOP);
    let cri = rig.cri.clone();
    let adding = tokio::spawn(async move { cri.run(&Pod::named("prod", "web-0")).await });
    wait::until("a running plugin", SOON, async || {
        ensure!(rig.node.processes()?.iter().any(|name| name == paths::PLUGIN), "none yet");
        Ok(())
    })
    .await?;
    rig.node.kill_containerd()?;
    assert!(adding.await?.is_err());
    // The plugin goes on without its runtime, and the agent may well record what it asks.
    agent.signal(Signal::CONT);
    rig.node.start_containerd().await?;
    for sandbox in rig.cri.list().await? {
        assert!(!sandbox.is_ready());
        rig.end(&aether_harness::cri::SandboxId(sandbox.id)).await?;
    }
    rig.consistent().await?;
    rig.nothing_left().await
}

async fn k07_a_pod_whose_sandbox_process_died_is_forgotten_at_its_stop(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    rig.node.run(&["ctr", "-n", "k8s.io", "tasks", "kill", "-s", "KILL", &id.0])?;
    wait::until("a sandbox that is not ready", Duration::from_secs(30), async || {
        ensure!(!rig.cri.status(&id).await?.is_ready(), "it still is");
        Ok(())
    })
    .await?;
    assert!(rig.record(&id).is_ok(), "no DEL has come yet");
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn o04_two_nodes_side_by_side_know_nothing_of_each_other(containerd: Containerd) -> anyhow::Result<()> {
    let ((one, _first), (two, mut second)) =
        tokio::try_join!(Rig::chained(containerd), Rig::chained(containerd))?;
    let (a, b) = (one.run(&Pod::named("prod", "web-0")).await?, two.run(&Pod::named("prod", "web-0")).await?);
    second.kill();
    two.end(&b).await?;
    assert!(one.node.tombstones()?.is_empty());
    assert!(one.record(&a).is_ok());
    drop(two);
    one.end(&a).await?;
    one.nothing_left().await
}

async fn t01_a_second_agent_waits_and_the_first_one_serves_on(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, mut first) = Rig::chained(containerd).await?;
    let mut second = rig.node.spawn_agent(&["--local-dir", "/tmp/second"])?;
    wait::until("the second agent's admin socket", SOON, async || {
        ensure!(rig.node.path("/tmp/second/admin.sock").exists(), "{}", second.log());
        Ok(())
    })
    .await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    assert!(first.is_running() && second.is_running());
    first.kill();
    rig.node.serving(&mut second).await?;
    assert_eq!(rig.record(&id)?.pod.name, "web-0");
    rig.end(&id).await?;
    rig.nothing_left().await
}

both!(
    s01_k07_records_outlive_restarts_of_the_runtime_and_of_the_agent,
    s06_after_a_reboot_the_old_boots_records_are_dropped_before_the_agent_serves,
    k07_s06_a_del_written_down_before_a_reboot_does_no_harm_after_it,
    k04_k07_a_runtime_killed_in_the_middle_of_an_add_leaves_nothing_after_the_stop,
    k07_a_pod_whose_sandbox_process_died_is_forgotten_at_its_stop,
    o04_two_nodes_side_by_side_know_nothing_of_each_other,
    t01_a_second_agent_waits_and_the_first_one_serves_on,
);
