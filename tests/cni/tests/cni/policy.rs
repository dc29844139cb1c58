//! An operator's policies at ADD: M05, M07, M08.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aether_harness::cri::Pod;
use aether_harness::policy::{REQUIRE_ANNOTATION, component};
use aether_harness::{Agent, Containerd, wait};
use aether_test_cni::Rig;
use anyhow::{Context as _, ensure};
use serde_json::Value;

/// Within which a policy is compiled and taken: a debug build's compiler on a busy machine.
const TAKEN: Duration = Duration::from_secs(120);

/// What a pod must say.
const TEAM: &str = "example.com/team";

fn manifest(version: &str, more: &str) -> String {
    format!(
        "world = \"pod-policy\"\nversion = \"{version}\"\nlimits = {{ call-ms = 1000, init-ms = 5000 }}\n{more}\n[settings]\nannotations = {{ \"{TEAM}\" = \"\" }}\n"
    )
}

fn of_team(name: &str) -> Pod {
    Pod { annotations: [(TEAM.to_owned(), "a".to_owned())].into(), ..Pod::named("prod", name) }
}

/// A node with our chain whose policies have time: the agent is a debug build.
async fn rig(containerd: Containerd) -> anyhow::Result<(Rig, Agent)> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let agent = rig.node.start_agent_with(&["--policy-budget-ms", "5000"]).await?;
    Ok((rig, agent))
}

/// Waits until a module's status is so.
async fn module(rig: &Rig, name: &str, so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    wait::until(&format!("module {name}"), TAKEN, async || {
        let told: Value = serde_json::from_str(&rig.node.run(&["aetherctl", "modules", "-o", "json"])?)?;
        let modules = told["modules"].as_array().context("no modules")?;
        let found = modules.iter().find(|module| module["name"] == name && so(module));
        found.cloned().with_context(|| format!("{told}"))
    })
    .await
}

async fn m07_a_denied_pod_shows_the_reason_and_leaves_nothing(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = rig(containerd).await?;
    rig.node.put_policy("teams", &manifest("1", ""), &component(REQUIRE_ANNOTATION)?)?;
    module(&rig, "teams", |module| module["state"] == "enabled").await?;
    let message = rig.refused(&Pod::named("prod", "nobodys")).await?;
    for part in ["the policy teams denies pod prod/nobodys", "the annotation example.com/team is missing"] {
        assert!(message.contains(part), "{message}");
    }
    rig.nothing_left().await?;
    // kube-system is never asked about, whatever the policy says (K06).
    let system = rig.run(&Pod::named("kube-system", "dns")).await?;
    let id = rig.run(&of_team("web")).await?;
    rig.record(&id)?;
    for id in [&id, &system] {
        rig.end(id).await?;
    }
    rig.node.remove_policy("teams")?;
    wait::until("the policy's end", TAKEN, async || {
        let text = rig.node.run(&["aetherctl", "modules"])?;
        ensure!(!text.contains("teams"), "{text}");
        Ok(())
    })
    .await?;
    let free = rig.run(&Pod { attempt: 1, ..Pod::named("prod", "nobodys") }).await?;
    rig.end(&free).await?;
    rig.nothing_left().await
}

async fn m05_a_broken_policy_denies_by_default_and_with_allow_it_does_not(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = rig(containerd).await?;
    rig.node.put_policy("teams", &manifest("1", ""), b"not a component")?;
    let teams = module(&rig, "teams", |module| module["state"] == "rejected").await?;
    assert!(teams["problem"].as_str().is_some_and(|problem| problem.contains("WebAssembly")), "{teams}");
    let message = rig.refused(&of_team("web")).await?;
    assert!(message.contains("policy teams") && message.contains("could not answer"), "{message}");
    let system = rig.run(&Pod::named("kube-system", "dns")).await?;
    rig.node.put_policy("teams", &manifest("1", "on-failure = \"allow\""), b"not a component")?;
    module(&rig, "teams", |module| module["onFailure"] == "allow").await?;
    let id = rig.run(&Pod { attempt: 1, ..of_team("web") }).await?;
    for id in [&id, &system] {
        rig.end(id).await?;
    }
    rig.nothing_left().await
}

/// How often the policy is swapped, and how many make pods meanwhile.
const SWAPS: usize = 6;
const WORKERS: usize = 3;

async fn m08_a_policy_swapped_under_load_fails_no_call(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, agent) = rig(containerd).await?;
    let rig = Arc::new(rig);
    let component = component(REQUIRE_ANNOTATION)?;
    rig.node.put_policy("teams", &manifest("0", ""), &component)?;
    module(&rig, "teams", |module| module["version"] == "0").await?;
    let (over, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let (rig, over, made) = (Arc::clone(&rig), Arc::clone(&over), Arc::clone(&made));
        workers.spawn(async move {
            let mut number = 0;
            while !over.load(Ordering::Relaxed) {
                number += 1;
                let id = rig.run(&of_team(&format!("load-{worker}-{number}"))).await?;
                rig.end(&id).await?;
                made.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    for swap in 1..=SWAPS {
        let before = made.load(Ordering::Relaxed);
        rig.node.put_policy("teams", &manifest(&swap.to_string(), ""), &component)?;
        let version = Value::from(swap.to_string());
        module(&rig, "teams", |module| module["version"] == version).await?;
        wait::until("pods under this version", TAKEN, async || {
            ensure!(made.load(Ordering::Relaxed) > before, "none yet; the agent says {}", agent.log());
            Ok(())
        })
        .await?;
    }
    over.store(true, Ordering::Relaxed);
    while let Some(worker) = workers.join_next().await {
        worker?.context("a call failed while the policy was swapped")?;
    }
    rig.nothing_left().await
}

both!(
    m07_a_denied_pod_shows_the_reason_and_leaves_nothing,
    m05_a_broken_policy_denies_by_default_and_with_allow_it_does_not,
    m08_a_policy_swapped_under_load_fails_no_call,
);
