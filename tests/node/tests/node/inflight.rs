//! Calls that are under way when the owner changes: K04, K05, T07, T13.

use std::sync::Arc;
use std::time::Duration;

use aether_harness::plugin::{Attachment, Plugin};
use aether_harness::{AGENT_LIMIT, Containerd, Signal, wait};
use aether_test_node::Stage;
use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

/// How many calls are queued at the moment of the takeover.
const QUEUED: usize = 200;
/// How the last of them begins before the takeover.
const LIMIT: Duration = Duration::from_secs(60);

/// ADDs that all begin now; their results.
fn adds(
    plugin: &Arc<Plugin>,
    netns: &str,
    count: usize,
) -> JoinSet<anyhow::Result<(String, std::process::Output)>> {
    let mut adding = JoinSet::new();
    for number in 0..count {
        let name = format!("queued-{number}");
        let to = Attachment { container: name.clone(), pod: name, netns: netns.to_owned() };
        let plugin = Arc::clone(plugin);
        adding.spawn_blocking(move || Ok((to.container.clone(), plugin.call("ADD", &to)?)));
    }
    adding
}

/// All must have succeeded; the container ids.
async fn all_added(
    mut adding: JoinSet<anyhow::Result<(String, std::process::Output)>>,
) -> anyhow::Result<std::collections::BTreeSet<String>> {
    let mut living = std::collections::BTreeSet::new();
    while let Some(done) = adding.join_next().await {
        let (container, output) = done??;
        ensure!(output.status.success(), "{container}: {}", String::from_utf8_lossy(&output.stdout));
        living.insert(container);
    }
    Ok(living)
}

async fn queued(kill: Signal) -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let plugin = Arc::new(Plugin::of(&stage.rig.node)?);
    let netns = Plugin::namespaces(&stage.rig.node, 1)?.pop().context("no namespace")?;
    owner.signal(Signal::STOP);
    let adding = adds(&plugin, &netns, QUEUED);
    wait::until("all plugins at the socket", LIMIT, async || {
        let processes = stage.rig.node.processes()?;
        let plugins = processes.iter().filter(|name| *name == aether_domain::paths::PLUGIN).count();
        ensure!(plugins == QUEUED, "{plugins}");
        Ok(())
    })
    .await?;
    owner.signal(kill);
    owner.signal(Signal::CONT);
    owner.gone(AGENT_LIMIT)?;
    standby.owns().await?;
    let living = all_added(adding).await?;
    let findings = stage.rig.node.audit_settled(&living).await?;
    assert!(findings.is_clean(), "{findings}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_t13_two_hundred_calls_queued_at_an_owner_that_is_told_to_stop_all_succeed() -> anyhow::Result<()>
{
    queued(Signal::TERM).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t10_t13_two_hundred_calls_queued_at_an_owner_that_is_killed_all_succeed() -> anyhow::Result<()> {
    queued(Signal::KILL).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_an_add_in_flight_at_sigterm_is_answered_by_the_old_owner_and_known_to_the_new()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    // Every flush to the disk takes half a second.
    let slow = stage.another().traced(&["trace=fsync", "inject=fsync:delay_enter=500000"]);
    let mut owner = stage.owner_by(&slow).await?;
    let mut standby = stage.standby().await?;
    let plugin = Arc::new(Plugin::of(&stage.rig.node)?);
    let netns = Plugin::namespaces(&stage.rig.node, 1)?.pop().context("no namespace")?;
    let adding = adds(&plugin, &netns, 3);
    wait::until("an ADD in flight", LIMIT, async || {
        let files = stage.rig.node.temporary_files("/var/lib/aether/pods")?;
        ensure!(!files.is_empty(), "nothing is written yet");
        Ok(())
    })
    .await?;
    owner.signal(Signal::TERM);
    let living = all_added(adding).await?;
    owner.gone(AGENT_LIMIT)?;
    standby.owns().await?;
    let findings = stage.rig.node.audit_settled(&living).await?;
    assert!(findings.is_clean(), "{findings}");
    assert_eq!(owner.ended(AGENT_LIMIT)?.code(), Some(0), "{}", owner.log());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn k07_t05_a_del_while_the_owner_hangs_is_applied_before_the_next_one_serves() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    let plugin = Arc::new(Plugin::of(&stage.rig.node)?);
    let netns = Plugin::namespaces(&stage.rig.node, 1)?.pop().context("no namespace")?;
    let mut living = all_added(adds(&plugin, &netns, 4)).await?;
    owner.signal(Signal::STOP);
    let gone = living.pop_first().context("an id")?;
    let to = Attachment { container: gone.clone(), pod: gone, netns };
    ensure!(plugin.call("DEL", &to)?.status.success(), "a DEL failed");
    assert_eq!(stage.rig.node.tombstones()?.len(), 1);
    owner.kill();
    standby.owns().await?;
    // Not soon: at once.
    let findings = stage.rig.node.audit(&living)?;
    assert!(findings.is_clean(), "{findings}");
    Ok(())
}

/// Connections that wait in the queue of the owner's listener are answered by whoever comes next, on that very connection.
async fn queued_connections(end: Signal) -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    owner.signal(Signal::STOP);
    let socket = stage.rig.node.path(aether_domain::paths::CNI_SOCKET_PATH);
    let mut asking = JoinSet::new();
    for _ in 0..QUEUED {
        let stream = tokio::net::UnixStream::connect(&socket).await?;
        asking.spawn(async move { aether_harness::probe::ask_over(stream).await });
    }
    owner.signal(end);
    owner.signal(Signal::CONT);
    owner.gone(AGENT_LIMIT)?;
    standby.owns().await?;
    let mut failed = Vec::new();
    while let Some(asked) = asking.join_next().await {
        failed.extend(asked?.err().map(|error| format!("{error:#}")));
    }
    ensure!(failed.is_empty(), "{} of {QUEUED} were not answered: {:?}", failed.len(), failed.first());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t13_two_hundred_connections_queued_at_an_owner_that_is_told_to_stop_are_all_answered()
-> anyhow::Result<()> {
    queued_connections(Signal::TERM).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t13_two_hundred_connections_queued_at_an_owner_that_is_killed_are_all_answered() -> anyhow::Result<()>
{
    queued_connections(Signal::KILL).await
}
