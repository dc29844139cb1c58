//! A node on which something is broken when the owner changes: the lock file, the state directory.

use std::time::Duration;

use aether_domain::paths;
use aether_harness::{AGENT_LIMIT, Containerd};
use aether_test_node::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn t01_a_lock_file_deleted_by_hand_ends_the_owner_and_the_standby_takes_over_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    std::fs::remove_file(stage.rig.node.path(paths::RUN_DIR).join(paths::LOCK))?;
    assert_eq!(owner.ended(AGENT_LIMIT)?.code(), Some(3), "{}", owner.log());
    standby.owns().await?;
    load.flows().await?;
    stage.all_well(load).await?;
    let third = stage.standby().await?;
    assert_eq!((standby.role().await?.as_str(), third.role().await?.as_str()), ("owner", "standby"));
    Ok(())
}

/// Puts the node's state on a file system of its own, with everything that is in it.
fn small_disk(stage: &Stage, size: &str) -> anyhow::Result<()> {
    let node = &stage.rig.node;
    let script = format!(
        "cp -a {0} /tmp/state && mount -t tmpfs -o size={size},mode=0700 state {0} && cp -a /tmp/state/. {0}",
        paths::STATE_DIR
    );
    node.run(&["sh", "-c", &script])?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_t09_a_full_state_directory_at_the_takeover_loses_nothing_and_adds_work_when_there_is_room()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    small_disk(&stage, "2m")?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    let filler = stage.rig.node.path(paths::STATE_DIR).join("filler");
    assert!(std::fs::write(&filler, vec![0; 8 << 20]).is_err(), "the disk is full now");
    owner.kill();
    standby.owns().await?;
    // pause: calls are made that a full disk refuses
    tokio::time::sleep(Duration::from_millis(500)).await;
    std::fs::remove_file(&filler)?;
    load.flows().await?;
    let record = load.stop().await?;
    for call in record.failed() {
        let why = call.failed.as_deref().unwrap_or_default();
        assert!(why.contains("No space left on device"), "{:?}: {why}", call.kind);
    }
    stage.nothing_lost(&record).await
}
