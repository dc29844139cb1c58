//! Agents that the kernel kills for want of memory, at their steps: T09, T10. The step is held open: strace makes the call
//! in it take its time.

use aether_harness::load::Load;
use aether_harness::{AGENT_LIMIT, Agent, Containerd, Signal, Threads, Tracer, wait};
use aether_test_node::Stage;
use anyhow::ensure;

use crate::steps::KILLED;

/// How strace holds a call open: for longer than an agent takes to starve on a busy machine, for less than an ADD waits.
const HELD: &str = "delay_enter=4000000";

/// Takes an agent's memory and waits until it has met its end: it is asked, so that it asks for memory.
async fn starves(stage: &Stage, agent: &mut Agent) -> anyhow::Result<()> {
    agent.starve(&stage.rig.node)?;
    wait::until("the end for want of memory", AGENT_LIMIT, async || {
        let _ = agent.role().await;
        ensure!(!agent.is_running(), "it still runs");
        Ok(())
    })
    .await?;
    let code = agent.ended(AGENT_LIMIT)?.code();
    ensure!(code == Some(KILLED), "it ended with {code:?}: {}", agent.log());
    Ok(())
}

/// Waits until an ADD is being written.
async fn in_an_add(stage: &Stage) -> anyhow::Result<()> {
    wait::until("an ADD in flight", AGENT_LIMIT, async || {
        let files = stage.rig.node.temporary_files("/var/lib/aether/pods")?;
        ensure!(!files.is_empty(), "nothing is being written");
        Ok(())
    })
    .await
}

/// An owner in the middle of an ADD, which is held open for as long as this is.
struct Held {
    stage: Stage,
    owner: Agent,
    standby: Agent,
    load: Load,
    open: Tracer,
}

async fn held() -> anyhow::Result<Held> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let standby = stage.chosen(&mut owner).await?;
    let load = stage.plugins().await?;
    let open = owner.traced(Threads::All, "fsync", HELD)?;
    in_an_add(&stage).await?;
    Ok(Held { stage, owner, standby, load, open })
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_a_standby_and_an_owner_that_serves_killed_for_want_of_memory_fail_no_call() -> anyhow::Result<()>
{
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    // A standby that is complete, and the owner still serves.
    let mut standby = stage.standby().await?;
    starves(&stage, &mut standby).await?;
    load.flows().await?;
    // The owner, in the middle of its calls.
    let mut standby = stage.standby().await?;
    starves(&stage, &mut owner).await?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_s01_an_owner_killed_for_want_of_memory_in_the_middle_of_an_add_fails_no_call()
-> anyhow::Result<()> {
    let Held { stage, mut owner, mut standby, load, open: _open } = held().await?;
    starves(&stage, &mut owner).await?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_t09_an_owner_killed_for_want_of_memory_while_it_drains_fails_no_call() -> anyhow::Result<()> {
    let Held { stage, mut owner, mut standby, load, open: _open } = held().await?;
    owner.signal(Signal::TERM);
    owner.logged("draining; ").await?;
    starves(&stage, &mut owner).await?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_an_heir_killed_for_want_of_memory_before_it_serves_fails_no_call() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut last = stage.chosen(&mut owner).await?;
    // It would try for the lock as well, and might be quicker.
    last.signal(Signal::STOP);
    let mut heir = stage.chosen(&mut owner).await?;
    let load = stage.plugins().await?;
    let _held = heir.traced(Threads::Main, "listen", HELD)?;
    owner.terminate(AGENT_LIMIT)?;
    heir.logged("read ").await?;
    starves(&stage, &mut heir).await?;
    last.signal(Signal::CONT);
    ensure!(!heir.log().contains("serving on the"), "it served: {}", heir.log());
    stage.taken_over_by(&mut last, load).await?;
    Ok(())
}
