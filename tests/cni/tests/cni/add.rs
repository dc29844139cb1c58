//! ADD when the agent is away, slow, or dies: fail closed, leave nothing, and never fail for a moment's absence.

use std::time::{Duration, Instant};

use aether_domain::paths;
use aether_harness::cri::{HostPort, Pod, Protocol};
use aether_harness::{Agent, Containerd, Signal, wait};
use aether_test_cni::{Rig, SOON};
use anyhow::{Context as _, ensure};

fn with_port(name: &str) -> Pod {
    let ports = vec![HostPort { host: 30080, container: 8080, protocol: Protocol::Tcp }];
    Pod { ports, ..Pod::named("prod", name) }
}

/// Waits until the plugin runs inside the node.
async fn plugin_runs(rig: &Rig) -> anyhow::Result<()> {
    wait::until("a running plugin", SOON, async || {
        let processes = rig.node.processes()?;
        ensure!(processes.iter().any(|name| name == paths::PLUGIN), "only {processes:?}");
        Ok(())
    })
    .await
}

async fn plugin_is_gone(rig: &Rig) -> anyhow::Result<()> {
    wait::until("the end of every plugin", SOON, async || {
        let processes = rig.node.processes()?;
        ensure!(!processes.iter().any(|name| name == paths::PLUGIN), "{processes:?}");
        Ok(())
    })
    .await
}

async fn k04_without_an_agent_no_pod_starts_and_nothing_is_left(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "1"]).await?;
    let begin = Instant::now();
    let message = rig.refused(&with_port("web-0")).await?;
    let took = begin.elapsed();
    assert!(message.contains(paths::CNI_SOCKET_PATH), "{message}");
    assert!(message.contains(paths::PLUGIN), "{message}");
    assert!(took >= Duration::from_secs(1), "it did not wait: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    let residue = rig.residue()?;
    assert!(residue.is_nothing(), "{residue:?}");
    assert!(rig.cri.list().await?.is_empty());
    Ok(())
}

async fn k04_k07_a_pod_that_never_came_to_be_leaves_no_tombstone_for_the_agent(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "1"]).await?;
    rig.refused(&with_port("web-0")).await?;
    assert!(rig.node.tombstones()?.is_empty());
    let _agent = rig.node.start_agent().await?;
    let id = rig.run(&Pod { attempt: 1, ..with_port("web-0") }).await?;
    rig.consistent().await?;
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn k04_an_agent_that_comes_while_an_add_waits_serves_it(containerd: Containerd) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let cri = rig.cri.clone();
    let adding = tokio::spawn(async move { cri.run(&Pod::named("prod", "web-0")).await });
    plugin_runs(&rig).await?;
    let _agent = rig.node.start_agent().await?;
    let id = adding.await?.context("the waiting ADD")?;
    assert_eq!(rig.record(&id)?.pod.name, "web-0");
    rig.end(&id).await?;
    rig.nothing_left().await
}

/// An ADD that has reached an agent which has stopped, so that it hangs there.
async fn hanging_add(
    rig: &Rig,
    agent: &Agent,
    cri: aether_harness::cri::Cri,
) -> anyhow::Result<tokio::task::JoinHandle<Result<aether_harness::cri::SandboxId, String>>> {
    agent.signal(Signal::STOP);
    let adding = tokio::spawn(async move {
        cri.run(&with_port("web-0")).await.map_err(|status| status.message().to_owned())
    });
    plugin_runs(rig).await?;
    Ok(adding)
}

async fn k04_k05_an_agent_killed_in_the_middle_of_an_add_and_started_again_serves_it(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let mut agent = rig.node.start_agent().await?;
    let adding = hanging_add(&rig, &agent, rig.cri.clone()).await?;
    agent.kill();
    let _agent = rig.node.start_agent().await?;
    let id = adding.await?.map_err(anyhow::Error::msg).context("the ADD")?;
    rig.consistent().await?;
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn k04_an_agent_that_never_answers_fails_the_add_within_its_deadline(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "1"]).await?;
    let agent = rig.node.start_agent().await?;
    let begin = Instant::now();
    let adding = hanging_add(&rig, &agent, rig.cri.clone()).await?;
    let message = adding.await?.err().context("the ADD succeeded without an answer")?;
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(message.contains(paths::CNI_SOCKET_PATH), "{message}");
    agent.signal(Signal::CONT);
    // The agent finds the ADD it slept through, or its DEL's tombstone: nothing may come of either.
    rig.consistent().await?;
    rig.nothing_left().await
}

async fn k16_k07_an_add_that_its_caller_gave_up_leaves_no_record(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let agent = rig.node.start_agent().await?;
    let adding = hanging_add(&rig, &agent, rig.cri.within(Duration::from_secs(2))).await?;
    assert!(adding.await?.is_err());
    plugin_is_gone(&rig).await?;
    agent.signal(Signal::CONT);
    rig.consistent().await?;
    rig.nothing_left().await
}

async fn k16_a_dropped_call_leaves_no_record(containerd: Containerd) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let agent = rig.node.start_agent().await?;
    let adding = hanging_add(&rig, &agent, rig.cri.clone()).await?;
    adding.abort();
    plugin_is_gone(&rig).await?;
    agent.signal(Signal::CONT);
    rig.consistent().await?;
    rig.nothing_left().await
}

async fn k06_ignored_namespaces_pass_without_an_agent(containerd: Containerd) -> anyhow::Result<()> {
    let install = [
        "--add-deadline-seconds",
        "30",
        "--ignore-namespace",
        "infra",
        "--release-namespace",
        "aether-system",
    ];
    let rig = Rig::installed(containerd, &install).await?;
    for namespace in ["kube-system", "infra", "aether-system"] {
        let begin = Instant::now();
        let id = rig.run(&Pod::named(namespace, "pod")).await?;
        assert!(begin.elapsed() < Duration::from_secs(10), "{namespace}: {:?}", begin.elapsed());
        rig.end(&id).await?;
    }
    rig.nothing_left().await
}

both!(
    k04_without_an_agent_no_pod_starts_and_nothing_is_left,
    k04_k07_a_pod_that_never_came_to_be_leaves_no_tombstone_for_the_agent,
    k04_an_agent_that_comes_while_an_add_waits_serves_it,
    k04_k05_an_agent_killed_in_the_middle_of_an_add_and_started_again_serves_it,
    k04_an_agent_that_never_answers_fails_the_add_within_its_deadline,
    k16_k07_an_add_that_its_caller_gave_up_leaves_no_record,
    k16_a_dropped_call_leaves_no_record,
    k06_ignored_namespaces_pass_without_an_agent,
);
