//! A hundred rounds of SIGKILL: the agent at random moments, the plugin at random system calls, under load. In the end
//! the records are the live sandboxes, whatever was lost on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use aether_domain::paths;
use aether_harness::cri::{Cri, Pod, SandboxId};
use aether_harness::{Containerd, tools};
use aether_test_cni::{Rig, WITHOUT_REPAIR};
use anyhow::{Context as _, bail};

/// How often the agent is killed.
const ROUNDS: u32 = 100;
/// How many pods come and go at a time.
const WORKERS: u32 = 3;
/// Within which a pod must be gone, however often its DEL is killed.
const END_LIMIT: Duration = Duration::from_secs(60);
/// The pause between two attempts to end a pod.
const PAUSE: Duration = Duration::from_millis(20);

/// In the plugin's place: kills every third run of it at a random one of its system calls; the
/// first thirty, of some eighty, only start the program. A DEL is spared where the ADD
/// had not succeeded: containerd 2 forgets a sandbox whose ADD and DEL both fail and never asks again, so that only the
/// sweep, a minute later, could find the record.
const KILLER: &str = r#"#!/bin/sh
real=/opt/cni/bin/aether-cni.real
added=/run/added-$CNI_CONTAINERID
random=$(od -An -N4 -tu4 /dev/urandom)
unlucky() {
  [ ! -e /run/quiet ] && [ $((random % 3)) = 0 ]
}
perish() {
  echo "$CNI_COMMAND" >>/run/killed
  exec strace -qq -f -o /dev/null -e trace=all -e inject=all:signal=KILL:when=$((random / 3 % 60 + 30)) "$real"
}
case $CNI_COMMAND in
ADD)
  unlucky && perish
  "$real"
  rc=$?
  [ $rc != 0 ] || : >"$added"
  exit $rc
  ;;
*)
  [ -e "$added" ] && unlucky && perish
  exec "$real"
  ;;
esac
"#;

async fn k04_k05_k07_a_hundred_kills_of_agent_and_plugin_under_load_lose_nothing(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "3"]).await?;
    put_killer(&rig)?;
    let done = Arc::new(AtomicBool::new(false));
    let started = Arc::new(AtomicU32::new(0));
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        workers.push(tokio::spawn(load(rig.cri.clone(), worker, done.clone(), started.clone())));
    }
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15 ^ u64::from(std::process::id());
    println!("seed {seed:#x}");
    for _ in 0..ROUNDS {
        // It would put the plugin back into the killer's place.
        let mut agent = rig.node.spawn_agent(&[WITHOUT_REPAIR])?;
        // pause: the moment of the kill is what is random here
        tokio::time::sleep(Duration::from_millis(random(&mut seed) % 200)).await;
        agent.kill();
    }
    std::fs::write(rig.node.path("/run/quiet"), "")?;
    let agent = rig.node.start_agent_with(&[WITHOUT_REPAIR]).await?;
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await?.context("a worker")?;
    }
    let killed = std::fs::read_to_string(rig.node.path("/run/killed")).unwrap_or_default();
    let count = |command: &str| killed.lines().filter(|line| *line == command).count();
    println!(
        "{} pods started, plugins killed: {} ADD, {} DEL",
        started.load(Ordering::Relaxed),
        count("ADD"),
        count("DEL")
    );
    assert!(
        count("ADD") > 0 && count("DEL") > 0 && started.load(Ordering::Relaxed) > 0,
        "the load did not work"
    );
    rig.consistent().await.with_context(|| agent.log())?;
    for sandbox in rig.cri.list().await? {
        rig.end(&SandboxId(sandbox.id)).await?;
    }
    rig.consistent().await?;
    assert!(rig.node.records()?.is_empty());
    Ok(())
}

fn put_killer(rig: &Rig) -> anyhow::Result<()> {
    let plugin = rig.node.path(paths::CNI_BIN_DIR).join(paths::PLUGIN);
    std::fs::rename(&plugin, plugin.with_extension("real"))?;
    tools::write_script(&plugin, KILLER)
}

/// Starts pods and ends most of them, until it is told to stop.
async fn load(cri: Cri, worker: u32, done: Arc<AtomicBool>, started: Arc<AtomicU32>) -> anyhow::Result<()> {
    let mut number = 0;
    while !done.load(Ordering::Relaxed) {
        number += 1;
        let pod = Pod::named("prod", &format!("w{worker}-{number}"));
        // A pod that does not start is the runtime's to clean up; it may keep the sandbox, which a kubelet then stops.
        if let Ok(id) = cri.run(&pod).await {
            started.fetch_add(1, Ordering::Relaxed);
            if number % 8 != 0 {
                end(&cri, &id).await?;
            }
        }
        for sandbox in cri.list().await? {
            let ours = sandbox.metadata.as_ref().is_some_and(|metadata| metadata.name == pod.name);
            if ours && !sandbox.is_ready() {
                end(&cri, &SandboxId(sandbox.id)).await?;
            }
        }
    }
    Ok(())
}

/// Ends a pod as a kubelet does: again and again until it is gone. (No `wait::until`: its future cannot be spawned.)
async fn end(cri: &Cri, id: &SandboxId) -> anyhow::Result<()> {
    let begin = Instant::now();
    loop {
        match cri.stop_and_remove(id).await {
            Ok(()) => return Ok(()),
            Err(status) if begin.elapsed() > END_LIMIT => {
                bail!("{id} is not gone after {END_LIMIT:?}: {status}")
            }
            // pause: of the poll
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// xorshift: random enough, and the same again for the same seed.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

both!(k04_k05_k07_a_hundred_kills_of_agent_and_plugin_under_load_lose_nothing);
