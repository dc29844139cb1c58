//! An owner that dies, at every step: T09, T10.

use std::time::Duration;

use aether_harness::{AGENT_LIMIT, Containerd, Signal};
use aether_test_node::Stage;
use anyhow::Context as _;

#[tokio::test(flavor = "multi_thread")]
async fn t09_an_owner_killed_under_load_is_taken_over_without_a_failed_call() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.pods(2).await?;
    for _ in 0..4 {
        let mut standby = stage.standby().await?;
        owner.kill();
        standby.owns().await?;
        load.flows().await?;
        owner = standby;
    }
    stage.all_well(load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_t09_an_owner_killed_at_any_moment_after_sigterm_is_taken_over_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    // An idle owner has drained after some milliseconds: before that it dies in the middle, after that it is gone.
    for micros in [0, 200, 500, 1_000, 2_000, 3_000, 5_000, 8_000, 12_000, 20_000] {
        let mut standby = stage.standby().await?;
        owner.signal(Signal::TERM);
        // pause: the moment of the kill is what this varies
        std::thread::sleep(Duration::from_micros(micros));
        owner.kill();
        standby.owns().await.with_context(|| format!("killed after {micros} us: {}", owner.log()))?;
        load.flows().await?;
        owner = standby;
    }
    stage.all_well(load).await?;
    Ok(())
}

/// Within which the load leads an owner to the step at which it dies.
const SELF: Duration = Duration::from_secs(3);

/// Steps of an owner at which it is killed: in the middle of an ADD, at the end of its life.
const STEPS: [&str; 6] = [
    // Mid-ADD: before the record is on the disk, before it has its name, before the name is durable.
    "inject=fsync:signal=KILL:when=6",
    "inject=fsync:signal=KILL:when=9",
    "inject=/rename:signal=KILL:when=4",
    "inject=/unlink:signal=KILL:when=3",
    // Mid-answer.
    "inject=accept4:signal=KILL:when=12",
    // After all is flushed and said, at the very end.
    "inject=exit_group:signal=KILL",
];

#[tokio::test(flavor = "multi_thread")]
async fn t09_s01_an_owner_killed_at_each_of_its_steps_is_taken_over_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    for step in STEPS {
        let start = stage.another().traced(&[step]);
        let mut doomed = stage.standby_by(&start).await?;
        owner.terminate(AGENT_LIMIT)?;
        let start = stage.another();
        let mut next = stage.rig.node.spawn_one(&start)?;
        // It dies by itself where the load leads it to that step, else it is told to end.
        if doomed.gone(SELF).is_err() {
            doomed.signal(Signal::TERM);
            doomed.gone(AGENT_LIMIT)?;
        }
        next.owns().await?;
        load.flows().await.with_context(|| step.to_owned())?;
        println!("{step}: ended with {:?}", doomed.ended(AGENT_LIMIT)?.code());
        owner = next;
    }
    stage.all_well(load).await?;
    Ok(())
}

/// Waits until a process that starves has met its end: it is asked, so that it asks for memory.
async fn starved(agent: &mut aether_harness::Agent) -> anyhow::Result<()> {
    aether_harness::wait::until("the end for want of memory", AGENT_LIMIT, async || {
        let _ = agent.role().await;
        anyhow::ensure!(!agent.is_running(), "it still runs");
        Ok(())
    })
    .await?;
    let code = agent.ended(AGENT_LIMIT)?.code();
    anyhow::ensure!(code == Some(137), "it ended with {code:?}: {}", agent.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_owners_and_standbys_killed_for_want_of_memory_are_replaced_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    // A standby that is complete, and the owner still serves.
    let mut standby = stage.standby().await?;
    standby.starve(&stage.rig.node)?;
    starved(&mut standby).await?;
    load.flows().await?;
    // The owner, in the middle of its calls.
    let mut standby = stage.standby().await?;
    owner.starve(&stage.rig.node)?;
    starved(&mut owner).await?;
    standby.owns().await?;
    load.flows().await?;
    // The owner, when it has been told to end.
    let mut next = stage.standby().await?;
    standby.signal(Signal::TERM);
    // It may be gone already.
    let _ = standby.starve(&stage.rig.node);
    standby.gone(AGENT_LIMIT)?;
    next.owns().await?;
    load.flows().await?;
    // A standby in its takeover.
    let mut heir = stage.standby().await?;
    heir.starve(&stage.rig.node)?;
    let last = stage.another();
    let mut last = stage.rig.node.spawn_one(&last)?;
    next.kill();
    starved(&mut heir).await?;
    last.owns().await?;
    load.flows().await?;
    stage.all_well(load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_t09_an_owner_killed_while_it_drains_is_taken_over_without_a_failed_call() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    // Every flush to the disk takes its time, so that a drain under load does too.
    let slow = stage.another().traced(&["trace=fsync", "inject=fsync:delay_enter=100000"]);
    let mut owner = stage.owner_by(&slow).await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    owner.signal(Signal::TERM);
    owner.logged("draining; ").await?;
    owner.kill();
    standby.owns().await?;
    load.flows().await?;
    stage.all_well(load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_a_standby_killed_while_the_owner_drains_for_it_makes_the_owner_serve_again() -> anyhow::Result<()>
{
    let mut stage = Stage::usual(Containerd::V2).await?;
    let slow = stage.another().traced(&["trace=fsync", "inject=fsync:delay_enter=200000"]);
    let mut owner = stage.owner_by(&slow).await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    owner.signal(Signal::TERM);
    owner.logged("draining; ").await?;
    standby.kill();
    owner.logged("serving again").await?;
    load.flows().await?;
    let mut next = stage.standby().await?;
    owner.gone(AGENT_LIMIT)?;
    next.owns().await?;
    load.flows().await?;
    stage.all_well(load).await?;
    Ok(())
}
