//! A node on which something is broken when the owner changes: the lock file, the state directory, a socket's path.

use aether_domain::paths;
use aether_harness::plugin::{Attachment, Plugin};
use aether_harness::{AGENT_LIMIT, Containerd, Signal, wait};
use aether_test_node::Stage;
use anyhow::{Context as _, ensure};

#[tokio::test(flavor = "multi_thread")]
async fn t01_a_lock_file_deleted_by_hand_ends_the_owner_and_the_standby_takes_over_without_a_failed_call()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    std::fs::remove_file(stage.rig.node.path(paths::RUN_DIR).join(paths::LOCK))?;
    assert_eq!(owner.ended(AGENT_LIMIT)?.code(), Some(3), "{}", owner.log());
    stage.taken_over_by(&mut standby, load).await?;
    let third = stage.standby().await?;
    assert_eq!((standby.role().await?.as_str(), third.role().await?.as_str()), ("owner", "standby"));
    Ok(())
}

/// The network namespace of a pod that is to be refused.
fn netns(stage: &Stage) -> anyhow::Result<String> {
    Plugin::namespaces(&stage.rig.node, 1)?.pop().context("no namespace")
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
    wait::until("a call that a full disk refuses", AGENT_LIMIT, async || {
        ensure!(!load.so_far().failed().is_empty(), "none has failed");
        Ok(())
    })
    .await?;
    std::fs::remove_file(&filler)?;
    load.flows().await?;
    let record = load.stop().await?;
    for call in record.failed() {
        let why = call.failed.as_deref().unwrap_or_default();
        assert!(why.contains("No space left on device"), "{:?}: {why}", call.kind);
    }
    stage.nothing_lost(&record).await
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_k07_t09_a_read_only_state_directory_at_the_takeover_is_said_and_nothing_is_lost()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    small_disk(&stage, "2m")?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    let record = load.stop().await?;
    // A tombstone that cannot be applied for now.
    owner.signal(Signal::STOP);
    let mut living = record.living.clone();
    let gone = living.pop_first().context("no pod was left alive")?;
    let plugin = Plugin::of(&stage.rig.node)?;
    let to = Attachment { container: gone.clone(), pod: gone, netns: String::new() };
    ensure!(plugin.call("DEL", &to)?.status.success(), "a DEL failed");
    assert_eq!(stage.rig.node.tombstones()?.len(), 1);
    let remount = |how: &str| {
        stage.rig.node.run(&["mount", "-o", &format!("remount,{how}"), paths::STATE_DIR]).map(|_| ())
    };
    remount("ro")?;
    owner.kill();
    // It takes over all the same, since whoever is asked can say why not; and what it could not apply it tries again.
    standby.owns().await?;
    standby.logged("tombstones were not applied before serving").await?;
    let to = Attachment { container: "refused".to_owned(), pod: "refused".to_owned(), netns: netns(&stage)? };
    let refused = plugin.call("ADD", &to)?;
    let said = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && said.contains("Read-only file system"), "{said}");
    remount("rw")?;
    let findings = stage.rig.node.audit_settled(&living).await?;
    assert!(findings.is_clean(), "{findings}: {}", standby.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t01_t13_a_socket_path_that_a_stranger_replaced_is_named_and_served_again_when_he_is_gone()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    let socket = stage.rig.node.path(paths::RUN_DIR).join(paths::CNI_SOCKET);
    let beside = stage.rig.node.path(paths::RUN_DIR).join("stranger");
    let replace = || -> anyhow::Result<_> {
        let stranger = std::os::unix::net::UnixListener::bind(&beside)?;
        std::fs::rename(&beside, &socket)?;
        Ok(stranger)
    };
    let stranger = replace()?;
    let line = owner.logged("listens on the CNI socket").await?;
    assert!(line.contains("process "), "{line}");
    drop(stranger);
    load.flows().await?;
    // And in the middle of a roll: he is there when the next one looks.
    let mut standby = stage.standby().await?;
    let stranger = replace()?;
    owner.terminate(AGENT_LIMIT)?;
    drop(stranger);
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t13_a_socket_path_that_is_removed_is_bound_anew_and_no_call_fails() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let load = stage.plugins().await?;
    for socket in [paths::CNI_SOCKET, paths::HANDOVER_SOCKET] {
        std::fs::remove_file(stage.rig.node.path(paths::RUN_DIR).join(socket))?;
    }
    owner.logged("no longer names our socket").await?;
    load.flows().await?;
    owner.terminate(AGENT_LIMIT)?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}
