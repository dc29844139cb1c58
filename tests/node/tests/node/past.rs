//! Agents of another time: without the hand-over, and with records that this one may not read. T06, T08, S02.

use aether_domain::paths;
use aether_harness::{AGENT_LIMIT, Containerd, PAST_AGENT, Start, tools};
use aether_test_node::Stage;
use anyhow::Context as _;

/// An agent that knows no hand-over.
fn past(stage: &mut Stage) -> anyhow::Result<Start> {
    Ok(stage.another().program(tools::program_under_test(PAST_AGENT)?))
}

#[tokio::test(flavor = "multi_thread")]
async fn t06_t08_t10_rolls_from_the_past_and_back_to_it_fail_no_call() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let start = past(&mut stage)?;
    let mut owner = stage.owner_by(&start).await?;
    let load = stage.pods(2).await?;
    for round in 0..4 {
        // Forth, back, forth, back: a standby older than the owner, and one that is newer.
        let start = if round % 2 == 0 { stage.another() } else { past(&mut stage)? };
        let mut standby = stage.standby_by(&start).await?;
        if round < 2 {
            owner.terminate(AGENT_LIMIT)?;
        } else {
            owner.kill();
        }
        standby.owns().await?;
        load.flows().await?;
        owner = standby;
    }
    stage.all_well(load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s02_a_roll_back_leaves_records_that_the_older_agent_may_not_read_and_the_next_one_finds_them()
-> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    let record = load.stop().await?;
    // As a newer agent would write it: with a format that names a newer reader.
    let pods = format!("{}/{}", paths::STATE_DIR, paths::PODS);
    let name = stage.rig.node.files(&pods)?.into_iter().next().context("no record")?;
    let file = stage.rig.node.path(&pods).join(&name);
    let text = std::fs::read_to_string(&file)?;
    let newer =
        text.replace("\"format\": 1", "\"format\": 9").replace("\"oldestReader\": 1", "\"oldestReader\": 9");
    assert_ne!(newer, text, "no format in {text}");
    std::fs::write(&file, &newer)?;
    for back in [true, false] {
        let start = if back { past(&mut stage)? } else { stage.another() };
        let mut next = stage.standby_by(&start).await?;
        owner.terminate(AGENT_LIMIT)?;
        next.owns().await?;
        let load = stage.plugins().await?;
        let more = load.stop().await?;
        more.nothing_failed()?;
        stage.rig.node.end_pods(&more).await?;
        assert_eq!(std::fs::read_to_string(&file)?, newer, "the record was touched");
        owner = next;
    }
    std::fs::write(&file, text)?;
    let last = stage.roll(&mut owner).await?;
    let findings = stage.rig.node.audit_settled(&record.living).await?;
    assert!(findings.is_clean(), "{findings}");
    drop(last);
    Ok(())
}
