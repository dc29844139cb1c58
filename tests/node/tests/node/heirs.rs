//! A standby that dies on the way, at every step: T09, T10.

use aether_harness::plugin::{Attachment, Plugin};
use aether_harness::{AGENT_LIMIT, Agent, Containerd, Signal, Threads};
use aether_test_node::Stage;
use anyhow::{Context as _, ensure};

use crate::standby::slow_compiler;
use crate::steps::{KILLED, Leads, Step, step};

/// The first calls of a standby: its own sockets, the lock, the call on the owner, the hello, the greeting. It dies at each.
const FIRST: [&str; 5] = ["bind", "flock", "connect", "sendmsg", "recvmsg"];

/// How the harness says that an agent behind strace was killed before it was seen to run.
const AT_ONCE: &str = "exit status: 137";

#[tokio::test(flavor = "multi_thread")]
async fn t09_t10_a_standby_killed_before_it_is_complete_fails_no_call() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    for call in FIRST {
        let [trace, kill] = [format!("trace={call}"), format!("inject={call}:signal=KILL:when=1")];
        let start = stage.another().traced(&[&trace, &kill]);
        match stage.rig.node.spawn_one(&start) {
            Err(error) => ensure!(format!("{error:#}").contains(AT_ONCE), "{call}: {error:#}"),
            Ok(mut doomed) => {
                let ended = doomed.ended(AGENT_LIMIT).with_context(|| call.to_owned())?;
                ensure!(ended.code() == Some(KILLED), "{call}: it ended with {ended}: {}", doomed.log());
            }
        }
        load.flows().await.with_context(|| call.to_owned())?;
    }
    // Attached, and as it says that it is complete.
    let mut rescue = stage.chosen(&mut owner).await?;
    let compiler = slow_compiler(&stage.rig.node)?;
    let start = stage.another().with(&compiler.each_ref().map(String::as_str));
    let mut doomed = stage.rig.node.spawn_one(&start)?;
    doomed.logged("attached to the owner").await?;
    let tracer = doomed.traced(Threads::Main, "sendmsg", "signal=KILL:when=1")?;
    std::fs::write(stage.rig.node.dir().join("done"), "")?;
    let ended = doomed.ended(AGENT_LIMIT)?;
    ensure!(ended.code() == Some(KILLED), "it ended with {ended}: {}", doomed.log());
    ensure!(tracer.seen().contains("complete"), "its calls: {}", tracer.seen());
    owner.terminate(AGENT_LIMIT)?;
    stage.taken_over_by(&mut rescue, load).await?;
    Ok(())
}

/// The steps of the chosen standby, from the owner's question to its own first record. Its calls are counted from the moment
/// at which it is chosen.
const STEPS: [Step; 7] = [
    step("as it is asked", Leads::Told, ("recvmsg", 1, "recvmsg(")),
    step("before it says \"ready\"", Leads::Told, ("sendmsg", 1, "ready")),
    step("as it applies tombstones", Leads::Hung, ("/unlink", 1, "unlink")),
    step("before it serves", Leads::Told, ("listen", 1, "listen(")),
    step("before standbys can call on it", Leads::Told, ("listen", 2, "listen(")),
    step("as it takes a call in", Leads::Told, ("accept4", 1, "accept4(")),
    step("before its first record is on the disk", Leads::Told, ("fsync", 1, "/pods")),
];

#[tokio::test(flavor = "multi_thread")]
async fn t09_t10_a_standby_killed_at_any_step_of_its_takeover_fails_no_call() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    stage.rests().await?;
    let load = stage.plugins().await?;
    for Step { name, leads, call: (call, nth, shown) } in STEPS {
        // The newest complete one is asked. The other one tries for the lock too when the owner is gone, and may be quicker: it
        // stands until the first has met its end.
        let mut rescue = stage.chosen(&mut owner).await?;
        rescue.signal(Signal::STOP);
        let mut doomed = stage.chosen(&mut owner).await?;
        let tracer = doomed.traced(Threads::All, call, &format!("signal=KILL:when={nth}"))?;
        if leads == Leads::Hung {
            hangs_at_a_del(&stage, &owner)?;
            owner.kill();
        } else {
            owner.signal(Signal::TERM);
        }
        let ended = doomed.ended(AGENT_LIMIT).with_context(|| format!("{name}: {}", tracer.seen()))?;
        let seen = tracer.seen();
        ensure!(ended.code() == Some(KILLED), "{name}: it ended with {ended}: {}", doomed.log());
        ensure!(seen.contains(shown), "{name}: its calls: {seen}");
        rescue.signal(Signal::CONT);
        owner.gone(AGENT_LIMIT).with_context(|| name.to_owned())?;
        rescue.owns().await.with_context(|| name.to_owned())?;
        load.flows().await.with_context(|| format!("{name}: {}", rescue.log()))?;
        owner = rescue;
    }
    stage.all_well(load).await?;
    Ok(())
}

/// Stops the owner and deletes a pod, so that there is a tombstone for whoever comes next.
fn hangs_at_a_del(stage: &Stage, owner: &Agent) -> anyhow::Result<()> {
    let plugin = Plugin::of(&stage.rig.node)?;
    let netns = Plugin::namespaces(&stage.rig.node, 1)?.pop().context("no namespace")?;
    let to = Attachment { container: "gone".to_owned(), pod: "gone".to_owned(), netns };
    ensure!(plugin.call("ADD", &to)?.status.success(), "an ADD failed");
    owner.signal(Signal::STOP);
    ensure!(plugin.call("DEL", &to)?.status.success(), "a DEL failed");
    ensure!(!stage.rig.node.tombstones()?.is_empty(), "no tombstone");
    Ok(())
}
