//! DEL when the agent is away: never in the way of a pod's deletion, and nothing is lost.

use std::time::{Duration, Instant};

use aether_harness::cri::Pod;
use aether_harness::{Containerd, Signal};
use aether_test_cni::Rig;

async fn k07_a_del_without_an_agent_becomes_a_tombstone_that_the_next_agent_applies(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    let (gone, stays) =
        (rig.run(&Pod::named("prod", "gone")).await?, rig.run(&Pod::named("prod", "stays")).await?);
    agent.kill();
    rig.end(&gone).await?;
    assert!(!rig.node.tombstones()?.is_empty());
    assert_eq!(rig.node.records()?.len(), 2, "nobody was there to remove a record");
    let _agent = rig.node.start_agent().await?;
    // Applied before it serves: at once, not soon.
    assert_eq!(rig.node.records()?.into_keys().collect::<Vec<_>>(), std::slice::from_ref(&stays.0));
    rig.consistent().await?;
    rig.end(&stays).await?;
    rig.nothing_left().await
}

async fn k07_a_del_that_the_agent_never_answers_succeeds_in_time_and_is_applied_later(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    agent.signal(Signal::STOP);
    let begin = Instant::now();
    rig.end(&id).await?;
    // Two DELs of at most a second each.
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert!(!rig.node.tombstones()?.is_empty());
    agent.signal(Signal::CONT);
    rig.consistent().await?;
    rig.nothing_left().await
}

async fn k07_a_second_stop_and_a_remove_without_a_namespace_succeed(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    rig.cri.stop(&id).await?;
    rig.cri.stop(&id).await?;
    agent.kill();
    rig.cri.stop(&id).await?;
    rig.cri.remove(&id).await?;
    rig.cri.remove(&id).await?;
    // Nobody listens and there is no record: nothing to write down.
    rig.nothing_left().await
}

async fn k07_dels_of_many_pods_without_an_agent_are_all_applied(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    let mut ids = Vec::new();
    for number in 0..5 {
        ids.push(rig.run(&Pod::named("prod", &format!("web-{number}"))).await?);
    }
    agent.kill();
    for id in &ids {
        rig.end(id).await?;
    }
    assert_eq!(rig.node.records()?.len(), ids.len());
    let _agent = rig.node.start_agent().await?;
    rig.nothing_left().await
}

both!(
    k07_a_del_without_an_agent_becomes_a_tombstone_that_the_next_agent_applies,
    k07_a_del_that_the_agent_never_answers_succeeds_in_time_and_is_applied_later,
    k07_a_second_stop_and_a_remove_without_a_namespace_succeed,
    k07_dels_of_many_pods_without_an_agent_are_all_applied,
);
