//! An owner that hangs: SIGSTOP, then SIGCONT or SIGKILL. T09, T10's exception, K07.

use std::time::{Duration, Instant};

use aether_harness::load::{Kind, Load};
use aether_harness::roll::PACE;
use aether_harness::{Containerd, Signal};
use aether_test_node::Stage;
use anyhow::ensure;

/// For how long an owner hangs.
const STOP: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn t09_t10_an_owner_stopped_for_ten_seconds_and_continued_goes_on_and_nothing_is_lost()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let standby = stage.standby().await?;
    let load = Load::plugin(&stage.rig.node, PACE * 4)?;
    load.flows().await?;
    owner.signal(Signal::STOP);
    // pause: the owner hangs
    tokio::time::sleep(STOP).await;
    owner.signal(Signal::CONT);
    load.flows().await?;
    assert_eq!((owner.role().await?.as_str(), standby.role().await?.as_str()), ("owner", "standby"));
    assert!(owner.is_running());
    let record = stage.all_well(load).await?;
    assert!(record.calls.iter().any(|call| call.kind == Kind::Add && call.took > STOP / 2), "none waited");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_an_owner_stopped_and_then_killed_is_taken_over_and_nothing_fails() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    for _ in 0..3 {
        let mut standby = stage.standby().await?;
        owner.signal(Signal::STOP);
        // pause: calls queue up at the stopped owner
        tokio::time::sleep(Duration::from_secs(2)).await;
        owner.kill();
        standby.owns().await?;
        load.flows().await?;
        owner = standby;
    }
    stage.all_well(load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_k04_k07_while_nobody_answers_adds_fail_by_their_deadline_dels_succeed_and_nothing_is_left()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = Load::plugin(&stage.rig.node, PACE * 4)?;
    load.flows().await?;
    owner.signal(Signal::STOP);
    let stopped = Instant::now();
    // Past an ADD's deadline of 5 s, and its DEL's second.
    // pause: the owner hangs
    tokio::time::sleep(STOP).await;
    let during = load.so_far();
    owner.kill();
    standby.owns().await?;
    let served = Instant::now();
    load.flows().await?;
    let record = load.stop().await?;
    for call in record.failed() {
        let why = call.failed.as_deref().unwrap_or_default();
        ensure!(call.kind == Kind::Add, "a {:?} failed: {why}", call.kind);
        ensure!(why.contains("\"code\": 11") || why.contains("\"code\":11"), "{why}");
        ensure!(why.contains(aether_domain::paths::CNI_SOCKET_PATH), "{why}");
        // Only those that waited while nobody answered.
        ensure!(call.began < served && call.took >= Duration::from_secs(4), "{:?}: {why}", call.took);
    }
    assert!(during.failed().iter().any(|call| call.kind == Kind::Add), "no ADD met its deadline");
    assert!(
        during.calls.iter().any(|call| call.kind == Kind::Del && call.began > stopped),
        "no DEL came while the owner hung"
    );
    stage.nothing_lost(&record).await
}
