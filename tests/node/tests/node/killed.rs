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
