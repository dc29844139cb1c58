//! A standby that never comes to own the node, and one that dies on the way: T03, T09.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use aether_domain::paths;
use aether_harness::{AGENT_LIMIT, Containerd, Node, Signal, tools};
use aether_test_node::Stage;
use anyhow::Context as _;

/// Everything that is on the node on account of agents, and what may not change: inode, size and change of each name.
fn tree(node: &Node) -> anyhow::Result<BTreeMap<String, (u64, u64, i64)>> {
    fn walk(root: &Path, found: &mut BTreeMap<String, (u64, u64, i64)>) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(root).with_context(|| format!("{}", root.display()))? {
            let path = entry?.path();
            let stat = path.symlink_metadata()?;
            let cache = path.file_name().is_some_and(|name| name == paths::MODULES_CACHE);
            if cache {
                continue;
            }
            // A directory's times change with a temporary file that came and went, and that is a write.
            found.insert(path.display().to_string(), (stat.ino(), stat.size(), stat.mtime_nsec()));
            if stat.is_dir() {
                walk(&path, found)?;
            }
        }
        Ok(())
    }
    let mut found = BTreeMap::new();
    for root in [paths::RUN_DIR, paths::STATE_DIR, paths::CNI_CONF_DIR, paths::CNI_BIN_DIR] {
        walk(&node.path(root), &mut found)?;
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn t03_t09_a_standby_that_is_deleted_leaves_no_trace_however_it_ends() -> anyhow::Result<()> {
    let mut stage = Stage::usual(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let pod = aether_harness::cri::Pod::named("prod", "web-0");
    stage.rig.run(&pod).await?;
    stage.rests().await?;
    let before = tree(&stage.rig.node)?;
    let mut told = stage.standby().await?;
    assert_eq!(tree(&stage.rig.node)?, before, "a standby left something");
    assert_eq!(told.terminate(AGENT_LIMIT)?.code(), Some(0));
    let mut killed = stage.standby().await?;
    killed.kill();
    // Half built: before it says anything of its state.
    let start = stage.another();
    let mut early = stage.rig.node.spawn_one(&start)?;
    early.kill();
    assert_eq!(tree(&stage.rig.node)?, before, "a standby that ended left something");
    assert!(owner.is_running());
    assert_eq!(owner.role().await?, "owner");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t09_an_owner_that_never_exits_leaves_the_standby_a_standby() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let mut owner = stage.owner().await?;
    let mut standby = stage.standby().await?;
    stage.rests().await?;
    let before = tree(&stage.rig.node)?;
    owner.signal(Signal::STOP);
    owner.signal(Signal::TERM);
    // pause: so long nothing may happen
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(standby.role().await?, "standby");
    assert_eq!(tree(&stage.rig.node)?, before, "a standby left something");
    let load = aether_harness::load::Load::plugin(&stage.rig.node, aether_harness::roll::PACE)?;
    owner.signal(Signal::CONT);
    owner.gone(AGENT_LIMIT)?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

/// An operator's module whose compiler takes until the file `done` is there; the flag that names the compiler.
pub(crate) fn slow_compiler(node: &Node) -> anyhow::Result<[String; 2]> {
    let script = node.dir().join("bin/slow-modc");
    tools::write_script(&script, "#!/bin/sh\nwhile [ ! -e /mnt/node/done ]; do sleep 0.05; done\nexit 1\n")?;
    node.put_policy("slow", "world = \"pod-policy\"\nmode = \"audit\"\n", b"\0asm\x0d\0\x01\0")?;
    Ok(["--module-compiler".to_owned(), "/mnt/node/bin/slow-modc".to_owned()])
}

#[tokio::test(flavor = "multi_thread")]
async fn t04_t12_sigterm_while_the_standby_is_half_built_is_put_off_until_it_is_complete()
-> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let start = stage.another().with(&["--termination-grace", "600"]);
    let mut owner = stage.owner_by(&start).await?;
    // A standby waits for its policies for 15 s only: nothing else begins in that time.
    let load = stage.plugins().await?;
    let compiler = slow_compiler(&stage.rig.node)?;
    let start = stage.another().with(&compiler.each_ref().map(String::as_str));
    let mut standby = stage.rig.node.spawn_one(&start)?;
    standby.logged("attached to the owner").await?;
    owner.signal(Signal::TERM);
    owner.logged("SIGTERM is put off").await?;
    let why = standby.readiness().await.err().context("a standby without its modules is ready")?;
    assert!(why.to_string().contains("not ready: policies"), "{why:#}");
    load.flows().await?;
    assert!(owner.is_running());
    std::fs::write(stage.rig.node.dir().join("done"), "")?;
    owner.gone(AGENT_LIMIT)?;
    stage.taken_over_by(&mut standby, load).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn t12_an_owner_goes_after_half_its_grace_when_the_standby_is_never_complete() -> anyhow::Result<()> {
    let mut stage = Stage::patient(Containerd::V2).await?;
    let start = stage.another().with(&["--termination-grace", "6"]);
    let mut owner = stage.owner_by(&start).await?;
    let load = stage.plugins().await?;
    let compiler = slow_compiler(&stage.rig.node)?;
    let start = stage.another().with(&compiler.each_ref().map(String::as_str));
    let mut standby = stage.rig.node.spawn_one(&start)?;
    standby.logged("attached to the owner").await?;
    let told = std::time::Instant::now();
    owner.signal(Signal::TERM);
    owner.gone(AGENT_LIMIT)?;
    assert!(told.elapsed() >= Duration::from_secs(3), "it went after {:?}", told.elapsed());
    // An incomplete standby that gets the lock goes on as a lone agent.
    standby.owns().await?;
    load.flows().await?;
    std::fs::write(stage.rig.node.dir().join("done"), "")?;
    stage.all_well(load).await?;
    Ok(())
}
