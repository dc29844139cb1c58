//! Records that nobody was asked to remove. (The name sorts first, so that the minute's wait begins first.)

use aether_domain::limits::SWEEP_INTERVAL;
use aether_harness::cri::Pod;
use aether_harness::{Containerd, lists, wait};
use aether_test_cni::Rig;
use anyhow::ensure;

#[tokio::test(flavor = "multi_thread")]
async fn s06_the_record_of_a_pod_that_went_while_the_list_was_stripped_is_swept() -> anyhow::Result<()> {
    let (rig, agent) = Rig::chained_without_repair(Containerd::V2).await?;
    let (stays, goes) =
        (rig.run(&Pod::named("prod", "stays")).await?, rig.run(&Pod::named("prod", "goes")).await?);
    rig.node.write_list(lists::FLANNEL_FILE, lists::FLANNEL)?;
    rig.node.loaded(&["flannel", "portmap"]).await?;
    rig.end(&goes).await?;
    assert_eq!(rig.node.records()?.len(), 2, "nobody was asked to remove it");
    wait::until("the sweep", SWEEP_INTERVAL * 10, async || {
        let records: Vec<_> = rig.node.records()?.into_keys().collect();
        ensure!(records == [stays.0.clone()], "{records:?}; {}", agent.log());
        Ok(())
    })
    .await
}
