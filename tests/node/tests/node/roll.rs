//! Rolls under load: T07, T10, T13.

use aether_harness::Containerd;
use aether_harness::load::Kind;
use aether_harness::probe::Prober;
use aether_harness::roll::PACE;
use aether_test_node::Stage;

/// How many rolls under the plugin's load.
const ROLLS: u32 = 12;

async fn rolls_of_pods(containerd: Containerd) -> anyhow::Result<()> {
    let mut stage = Stage::usual(containerd).await?;
    let mut owner = stage.owner().await?;
    let load = stage.pods(2).await?;
    let mut rolls = Vec::new();
    for _ in 0..3 {
        let (new, rolled) = stage.roll(&mut owner).await?;
        println!("built in {:?}, taken over in {:?}", rolled.built(), rolled.took());
        owner = new;
        rolls.push(rolled);
        load.flows().await?;
    }
    let record = stage.all_well(load).await?;
    assert!(record.at_hand_overs(&rolls) > 0, "no call was under way at any hand-over");
    assert!(record.succeeded(Kind::Run) > 0 && record.succeeded(Kind::Remove) > 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_rolls_under_pods_that_come_and_go_fail_no_call_with_containerd_1() -> anyhow::Result<()> {
    rolls_of_pods(Containerd::V1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_rolls_under_pods_that_come_and_go_fail_no_call_with_containerd_2() -> anyhow::Result<()> {
    rolls_of_pods(Containerd::V2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_rolls_under_the_plugins_load_fail_no_call_and_are_told_by_the_prober() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    let prober = Prober::start(&stage.rig.node.path(aether_domain::paths::CNI_SOCKET_PATH))?;
    let mut rolls = Vec::new();
    for number in 0..ROLLS {
        // pause: else every roll begins in the same part of the load's pace, between two calls perhaps
        tokio::time::sleep(PACE * number / ROLLS).await;
        let (new, rolled) = stage.roll(&mut owner).await?;
        owner = new;
        rolls.push(rolled);
        load.flows().await?;
    }
    let record = stage.all_well(load).await?;
    assert!(record.at_hand_overs(&rolls) > 0, "no call was under way at any hand-over");
    let answers = prober.stop()?;
    for rolled in rolls {
        println!("{:?}: gap {:?}", rolled.took(), answers.gap(rolled.told, rolled.owns));
    }
    assert!(record.succeeded(Kind::Add) > 0 && record.succeeded(Kind::Del) > 0);
    assert!(!answers.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_t13_three_agents_take_over_from_each_other_and_fail_no_call() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let (mut second, mut third) = (stage.standby().await?, stage.standby().await?);
    let load = stage.plugins().await?;
    owner.terminate(aether_harness::AGENT_LIMIT)?;
    // Which of the two it is, is not promised to those who know no hand-over.
    load.flows().await?;
    let (heir, other) = Stage::settled(&mut second, &mut third).await?;
    let mut fourth = stage.standby().await?;
    heir.kill();
    load.flows().await?;
    // Both standbys may be the one: whoever owns it now goes too, and the last one is left.
    let (owner, last) = Stage::settled(other, &mut fourth).await?;
    owner.terminate(aether_harness::AGENT_LIMIT)?;
    stage.taken_over_by(last, load).await?;
    Ok(())
}
