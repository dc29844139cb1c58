//! An owner that dies, at every step: T09, T10.

use std::time::Duration;

use aether_harness::load::{Load, Record};
use aether_harness::roll::PACE;
use aether_harness::{AGENT_LIMIT, Containerd, Signal};
use aether_test_node::Stage;
use anyhow::{Context as _, ensure};

use crate::steps::{KILLED, Leads, Step, step};

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

/// Steps of an owner at which it is killed. Calls are counted from the moment at which its standby is chosen; of its messages
/// to that one, the next are "ready?" and "yours".
const STEPS: [Step; 9] = [
    step("before the first record is on the disk", Leads::Calls, ("fsync", 1, "/pods/.aether-tmp-")),
    step("before a record has its name", Leads::Calls, ("/rename", 1, "/pods>, \".aether-tmp-")),
    step("before a record's name is durable", Leads::Calls, ("fsync", 2, "/pods>")),
    step("before a record is removed", Leads::Calls, ("/unlink", 1, "/pods>, ")),
    step("as it takes a call in", Leads::Calls, ("accept4", 2, "accept4")),
    step("before the drain", Leads::Told, ("sendmsg", 1, "leaving")),
    step("after the flush", Leads::Told, ("ppoll", 1, "POLLRDHUP")),
    step("before \"yours\"", Leads::Told, ("sendmsg", 2, "yours")),
    step("after \"yours\"", Leads::Told, ("exit_group", 1, "exit_group(0")),
];

#[tokio::test(flavor = "multi_thread")]
async fn t09_s01_an_owner_killed_at_each_of_its_steps_is_taken_over_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    stage.rests().await?;
    let mut record = Record::default();
    for step in STEPS {
        let Step { name, leads, call: (call, nth, shown) } = step;
        let mut next = stage.chosen(&mut owner).await?;
        let tracer = owner.traced(step.of_owner(), call, &format!("signal=KILL:when={nth}"))?;
        let load = Load::plugin(&stage.rig.node, PACE)?;
        if leads == Leads::Told {
            load.flows().await?;
            owner.signal(Signal::TERM);
        }
        let ended = owner.ended(AGENT_LIMIT).with_context(|| format!("{name}: {}", tracer.seen()))?;
        let seen = tracer.seen();
        ensure!(ended.code() == Some(KILLED), "{name}: it ended with {ended}: {}", owner.log());
        ensure!(seen.contains(shown), "{name}: its calls: {seen}");
        let told = owner.log().contains("told to stop");
        ensure!(told == (leads == Leads::Told), "{name}: {}", owner.log());
        next.owns().await.with_context(|| name.to_owned())?;
        load.flows().await.with_context(|| name.to_owned())?;
        record.add(load.stop().await?);
        owner = next;
    }
    record.nothing_failed()?;
    stage.nothing_lost(&record).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_t09_an_owner_killed_while_it_drains_is_taken_over_without_a_failed_call() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    // Every flush to the disk takes its time, so that a drain under load does too.
    let slow = stage.another().traced(&["trace=fsync", "inject=fsync:delay_enter=100000"]);
    let mut owner = stage.owner_by(&slow).await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    owner.signal(Signal::TERM);
    owner.logged("draining; ").await?;
    owner.kill();
    assert_eq!(owner.ended(AGENT_LIMIT)?.code(), Some(KILLED), "it had drained: {}", owner.log());
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_a_standby_killed_while_the_owner_drains_for_it_makes_the_owner_serve_again() -> anyhow::Result<()>
{
    let mut stage = Stage::patient(Containerd::V2).await?;
    let slow = stage.another().traced(&["trace=fsync", "inject=fsync:delay_enter=200000"]);
    let mut owner = stage.owner_by(&slow).await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    owner.signal(Signal::TERM);
    owner.logged("draining; ").await?;
    standby.kill();
    owner.logged("serving again").await?;
    load.flows().await?;
    // It is handed over to in the moment in which it is complete: nobody sees it stand by.
    let start = stage.another();
    let mut next = stage.rig.node.spawn_one(&start)?;
    owner.gone(AGENT_LIMIT)?;
    stage.taken_over_by(&mut next, load).await?;
    Ok(())
}
