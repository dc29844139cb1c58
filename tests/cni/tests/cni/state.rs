//! The agent's state directory in a bad way: no pod starts that cannot be recorded, and what cannot be read harms none.

use aether_domain::paths::{PODS, STATE_DIR};
use aether_harness::Containerd;
use aether_harness::cri::Pod;
use aether_test_cni::Rig;

/// A node whose state directory is a small file system of its own.
async fn small(containerd: Containerd) -> anyhow::Result<Rig> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "2"]).await?;
    rig.node.run(&["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "state", STATE_DIR])?;
    Ok(rig)
}

async fn s01_with_a_full_state_directory_no_pod_starts_and_the_message_says_why(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = small(containerd).await?;
    let _agent = rig.node.start_agent().await?;
    let old = rig.run(&Pod::named("prod", "old")).await?;
    rig.node.run(&["sh", "-c", &format!("dd if=/dev/zero of={STATE_DIR}/full bs=1k 2>/dev/null; true")])?;
    let message = rig.refused(&Pod::named("prod", "new")).await?;
    assert!(message.contains(STATE_DIR), "{message}");
    assert!(message.contains("space"), "{message}");
    // A pod goes all the same, and room makes pods start again.
    rig.end(&old).await?;
    rig.node.run(&["rm", &format!("{STATE_DIR}/full")])?;
    rig.consistent().await?;
    let new = rig.run(&Pod { attempt: 1, ..Pod::named("prod", "new") }).await?;
    rig.end(&new).await?;
    rig.nothing_left().await
}

async fn s01_k07_with_a_read_only_state_directory_pods_go_but_do_not_come(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = small(containerd).await?;
    let agent = rig.node.start_agent().await?;
    let old = rig.run(&Pod::named("prod", "old")).await?;
    rig.node.run(&["mount", "-o", "remount,ro", STATE_DIR])?;
    let message = rig.refused(&Pod::named("prod", "new")).await?;
    assert!(message.contains(STATE_DIR) && message.contains("ead-only"), "{message}");
    rig.end(&old).await?;
    rig.node.run(&["mount", "-o", "remount,rw", STATE_DIR])?;
    let residue = rig.residue()?;
    assert!(
        residue.veths.is_empty() && residue.addresses.is_empty() && residue.netns.is_empty(),
        "{residue:?}"
    );
    let new = rig.run(&Pod { attempt: 1, ..Pod::named("prod", "new") }).await?;
    assert!(rig.record(&new).is_ok(), "{}", agent.log());
    rig.end(&new).await
}

async fn s02_damaged_records_are_put_aside_and_the_others_stay(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    let stays = rig.run(&Pod::named("prod", "stays")).await?;
    let spoilt = rig.run(&Pod::named("prod", "spoilt")).await?;
    agent.kill();
    let name = format!("{}+eth0.json", spoilt.0);
    let whole = std::fs::read(rig.node.path(STATE_DIR).join(PODS).join(&name))?;
    std::fs::write(rig.node.path(STATE_DIR).join(PODS).join(&name), &whole[..whole.len() / 2])?;
    std::fs::write(rig.node.path(STATE_DIR).join(PODS).join("empty+eth0.json"), "")?;
    let agent = rig.node.start_agent().await?;
    assert_eq!(
        rig.node.records()?.into_keys().collect::<Vec<_>>(),
        std::slice::from_ref(&stays.0),
        "{}",
        agent.log()
    );
    assert!(agent.log().contains(&name), "{}", agent.log());
    for id in [&stays, &spoilt] {
        rig.end(id).await?;
    }
    assert!(rig.node.records()?.is_empty());
    Ok(())
}

both!(
    s01_with_a_full_state_directory_no_pod_starts_and_the_message_says_why,
    s01_k07_with_a_read_only_state_directory_pods_go_but_do_not_come,
    s02_damaged_records_are_put_aside_and_the_others_stay,
);
