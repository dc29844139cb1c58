//! Owners and standbys that hang at their steps: SIGSTOP for ten seconds and then SIGCONT, and SIGSTOP and then SIGKILL. T09,
//! T10, T12. Every step has a node of its own, so that all of them hang at the same time.

use std::time::Duration;

use aether_harness::load::Load;
use aether_harness::roll::PACE;
use aether_harness::{AGENT_LIMIT, Agent, Containerd, Signal, Threads, Tracer};
use aether_test_node::Stage;
use anyhow::{Context as _, ensure};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::standby::slow_compiler;
use crate::steps::{KILLED, Leads, Step, step};

/// For how long an agent hangs.
const STOP: Duration = Duration::from_secs(10);

/// What ends a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    Continued,
    Killed,
}

/// Steps of an owner. A stopped one has made the call, and does nothing more.
const OWNER: [Step; 5] = [
    step("with a record that has no name yet", Leads::Calls, ("fsync", 1, "/pods/.aether-tmp-")),
    step("with a record whose name is not durable", Leads::Calls, ("/rename", 1, "/pods>, \".aether-tmp-")),
    step("before the drain", Leads::Told, ("sendmsg", 1, "leaving")),
    step("after the flush", Leads::Told, ("ppoll", 1, "POLLRDHUP")),
    step("after \"yours\"", Leads::Told, ("sendmsg", 2, "yours")),
];

/// Steps of a standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standby {
    /// Attached, and not complete.
    HalfBuilt,
    /// It has said that it is complete.
    Complete,
    /// It has said that it is ready.
    Ready,
    /// It has the lock, and does not serve yet.
    Heir,
}

/// Plays the scenes, all at the same time.
async fn all<S, F>(scenes: impl IntoIterator<Item = S>, play: fn(S) -> F) -> anyhow::Result<()>
where
    S: Send + 'static,
    F: Future<Output = anyhow::Result<()>> + 'static,
{
    let mut playing = JoinSet::new();
    for scene in scenes {
        // Each has a thread, since much of a scene blocks.
        playing.spawn_blocking(move || Handle::current().block_on(play(scene)));
    }
    while let Some(played) = playing.join_next().await {
        played.context("a scene panicked")??;
    }
    Ok(())
}

/// A load that leaves the processors to the other scenes.
fn load(stage: &Stage) -> anyhow::Result<Load> {
    Load::plugin(&stage.rig.node, PACE * 4)
}

/// Ends the stop of an agent that strace may have stopped.
async fn ends(agent: &mut Agent, tracer: Option<Tracer>, then: Then) -> anyhow::Result<()> {
    match then {
        Then::Continued => {
            // pause: the agent hangs
            tokio::time::sleep(STOP).await;
            // It is to be stopped once only.
            drop(tracer);
            agent.signal(Signal::CONT);
        }
        Then::Killed => {
            agent.kill();
            let code = agent.ended(AGENT_LIMIT)?.code();
            ensure!(code == Some(KILLED), "it ended with {code:?}: {}", agent.log());
        }
    }
    Ok(())
}

async fn owner_stopped((step, then): (Step, Then)) -> anyhow::Result<()> {
    let Step { name, leads, call: (call, nth, shown) } = step;
    let what = || format!("an owner stopped {name}, then {then:?}");
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    stage.rests().await?;
    let mut standby = stage.chosen(&mut owner).await?;
    let tracer = owner.traced(step.of_owner(), call, &format!("signal=STOP:when={nth}"))?;
    let load = load(&stage)?;
    if leads == Leads::Told {
        load.flows().await.with_context(what)?;
        owner.signal(Signal::TERM);
    }
    tracer.stopped().await.with_context(what)?;
    let seen = tracer.seen();
    ensure!(seen.contains(shown), "{}: its calls: {seen}", what());
    let told = owner.log().contains("told to stop");
    ensure!(told == (leads == Leads::Told), "{}: {}", what(), owner.log());
    ends(&mut owner, Some(tracer), then).await.with_context(what)?;
    if (leads, then) == (Leads::Calls, Then::Continued) {
        load.flows().await.with_context(what)?;
        let roles = (owner.role().await?, standby.role().await?);
        ensure!(roles == ("owner".to_owned(), "standby".to_owned()), "{}: {roles:?}", what());
    } else {
        let code = owner.ended(AGENT_LIMIT).with_context(what)?.code();
        ensure!(then == Then::Killed || code == Some(0), "{}: {code:?}: {}", what(), owner.log());
        standby.owns().await.with_context(what)?;
        load.flows().await.with_context(what)?;
    }
    stage.all_well(load).await.with_context(what)?;
    Ok(())
}

/// A standby that hangs at a step; of the owner, who is told to end, it is awaited that he serves for as long as he must.
async fn stops(
    stage: &mut Stage,
    owner: &mut Agent,
    load: &Load,
    step: Standby,
) -> anyhow::Result<(Agent, Option<Tracer>)> {
    Ok(match step {
        Standby::HalfBuilt | Standby::Complete => {
            let compiler = slow_compiler(&stage.rig.node)?;
            let start = stage.another().with(&compiler.each_ref().map(String::as_str));
            let mut standby = stage.rig.node.spawn_one(&start)?;
            standby.logged("attached to the owner").await?;
            let tracer = if step == Standby::Complete {
                let tracer = standby.traced(Threads::Main, "sendmsg", "signal=STOP:when=1")?;
                std::fs::write(stage.rig.node.dir().join("done"), "")?;
                tracer.stopped().await?;
                ensure!(tracer.seen().contains("complete"), "its calls: {}", tracer.seen());
                Some(tracer)
            } else {
                standby.signal(Signal::STOP);
                None
            };
            owner.signal(Signal::TERM);
            owner.logged("SIGTERM is put off").await?;
            load.flows().await?;
            ensure!(owner.is_running(), "it ended: {}", owner.log());
            (standby, tracer)
        }
        Standby::Ready | Standby::Heir => {
            let standby = stage.chosen(owner).await?;
            // It says "ready" from wherever it has read ahead.
            let (threads, call, shown) = if step == Standby::Ready {
                (Threads::All, "sendmsg", "ready")
            } else {
                (Threads::Main, "listen", "listen(")
            };
            let tracer = standby.traced(threads, call, "signal=STOP:when=1")?;
            owner.signal(Signal::TERM);
            tracer.stopped().await?;
            ensure!(tracer.seen().contains(shown), "its calls: {}", tracer.seen());
            (standby, Some(tracer))
        }
    })
}

async fn standby_stopped((step, then): (Standby, Then)) -> anyhow::Result<()> {
    let what = || format!("a standby stopped at {step:?}, then {then:?}");
    let mut stage = Stage::patient(Containerd::V2).await?;
    // Put off for as long as this takes.
    let start = stage.another().with(&["--termination-grace", "600"]);
    let mut owner = stage.owner_by(&start).await?;
    let load = load(&stage)?;
    load.flows().await.with_context(what)?;
    let (mut standby, tracer) = stops(&mut stage, &mut owner, &load, step).await.with_context(what)?;
    ends(&mut standby, tracer, then).await.with_context(what)?;
    std::fs::write(stage.rig.node.dir().join("done"), "")?;
    let mut next = match then {
        Then::Continued => standby,
        Then::Killed => {
            let start = stage.another();
            stage.rig.node.spawn_one(&start)?
        }
    };
    let code = owner.ended(AGENT_LIMIT).with_context(what)?.code();
    ensure!(code == Some(0), "{}: the owner ended with {code:?}: {}", what(), owner.log());
    next.owns().await.with_context(what)?;
    load.flows().await.with_context(what)?;
    stage.all_well(load).await.with_context(what)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_t10_an_owner_stopped_at_each_of_its_steps_goes_on_when_it_is_continued() -> anyhow::Result<()> {
    all(OWNER.map(|step| (step, Then::Continued)), owner_stopped).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_an_owner_stopped_at_each_of_its_steps_and_killed_is_taken_over_without_a_failed_call()
-> anyhow::Result<()> {
    all(OWNER.map(|step| (step, Then::Killed)), owner_stopped).await
}

/// All steps of a standby.
const STANDBY: [Standby; 4] = [Standby::HalfBuilt, Standby::Complete, Standby::Ready, Standby::Heir];

#[tokio::test(flavor = "multi_thread")]
async fn t09_t10_t12_a_standby_stopped_at_each_of_its_steps_takes_over_when_it_is_continued()
-> anyhow::Result<()> {
    all(STANDBY.map(|step| (step, Then::Continued)), standby_stopped).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_t12_a_standby_stopped_at_each_of_its_steps_and_killed_leaves_the_node_to_the_next_one()
-> anyhow::Result<()> {
    all(STANDBY.map(|step| (step, Then::Killed)), standby_stopped).await
}

#[tokio::test(flavor = "multi_thread")]
async fn t07_t10_with_the_chosen_standby_stopped_the_next_complete_one_takes_over() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let load = stage.plugins().await?;
    let mut second = stage.chosen(&mut owner).await?;
    let mut first = stage.chosen(&mut owner).await?;
    first.signal(Signal::STOP);
    let code = owner.terminate(AGENT_LIMIT)?.code();
    ensure!(code == Some(0), "it ended with {code:?}: {}", owner.log());
    ensure!(owner.log().contains("did not say that it is ready: asking the next"), "{}", owner.log());
    ensure!(!owner.log().contains("SIGTERM is put off"), "{}", owner.log());
    second.owns().await?;
    load.flows().await?;
    first.signal(Signal::CONT);
    first.stands_by().await?;
    load.flows().await?;
    stage.all_well(load).await?;
    Ok(())
}
