//! The node itself: that it starts under both containerds, carries pods, and leaves nothing, however its owner ends.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use aether_harness::cri::{HostPort, Pod, Protocol};
use aether_harness::{Containerd, Node, Options, Signal, wait};
use anyhow::{Context as _, ensure};

/// Within which all of a node must be gone.
const GONE: Duration = Duration::from_secs(20);

async fn gone(pid: i32, dir: &Path) -> anyhow::Result<()> {
    wait::until("the node to be gone", GONE, async || {
        ensure!(!dir.exists(), "{} still is there", dir.display());
        ensure!(!Path::new(&format!("/proc/{pid}")).exists(), "pid {pid} still is there");
        Ok(())
    })
    .await
}

async fn carries_a_pod(containerd: Containerd) -> anyhow::Result<()> {
    let mut node = Node::start(Options::flannel(containerd)).await?;
    let cri = node.cri();
    node.loaded(&["flannel", "portmap"]).await?;
    let ports = vec![HostPort { host: 30080, container: 8080, protocol: Protocol::Tcp }];
    let id = cri.run(&Pod { ports, ..Pod::named("prod", "web-0") }).await?;
    let status = cri.status(&id).await?;
    assert!(status.is_ready() && status.address().starts_with("10.244.1."), "{status:?}");
    let residue = node.residue()?;
    assert_eq!((residue.veths.len(), residue.addresses.len()), (1, 1), "{residue:?}");
    assert!(!residue.port_maps.is_empty(), "{residue:?}");
    node.stop_containerd()?;
    node.start_containerd().await?;
    assert!(cri.status(&id).await?.is_ready());
    cri.stop_and_remove(&id).await?;
    let residue = node.residue()?;
    assert!(residue.is_nothing(), "{residue:?}");
    let (pid, dir) = (node.pid(), node.dir().to_path_buf());
    drop(node);
    assert!(!dir.exists() && !Path::new(&format!("/proc/{pid}")).exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_containerd_1_carries_a_pod_and_leaves_nothing() -> anyhow::Result<()> {
    carries_a_pod(Containerd::V1).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_containerd_2_carries_a_pod_and_leaves_nothing() -> anyhow::Result<()> {
    carries_a_pod(Containerd::V2).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_side_by_side_do_not_meet() -> anyhow::Result<()> {
    let one = Node::start(Options::flannel(Containerd::V1)).await?;
    let two = Node::start(Options::flannel(Containerd::V2)).await?;
    let boot = |node: &Node| std::fs::read_to_string(node.path("/proc/sys/kernel/random/boot_id"));
    assert_ne!(boot(&one)?, boot(&two)?);
    for node in [&one, &two] {
        let id = node.cri().run(&Pod::named("prod", "web-0")).await?;
        assert_eq!(node.cri().status(&id).await?.address(), "10.244.1.2");
        assert_eq!(node.cri().list().await?.len(), 1);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reboot_ends_all_that_runs_and_keeps_the_disk() -> anyhow::Result<()> {
    let mut node = Node::start(Options::flannel(Containerd::V2)).await?;
    let id = node.cri().run(&Pod::named("prod", "web-0")).await?;
    let boot = std::fs::read_to_string(node.path("/proc/sys/kernel/random/boot_id"))?;
    node.reboot().await?;
    assert_ne!(std::fs::read_to_string(node.path("/proc/sys/kernel/random/boot_id"))?, boot);
    assert!(!node.cri().status(&id).await?.is_ready());
    assert!(node.residue()?.veths.is_empty());
    node.cri().run(&Pod::named("prod", "web-1")).await?;
    node.cri().stop_and_remove(&id).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_its_owner_leaves_nothing_of_a_node() -> anyhow::Result<()> {
    let (say, said) = std::sync::mpsc::channel();
    let owner = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let node = Node::start(Options::flannel(Containerd::V1)).await.unwrap();
            node.cri().run(&Pod::named("prod", "web-0")).await.unwrap();
            say.send((node.pid(), node.dir().to_path_buf())).unwrap();
            panic!("as a failed assertion would");
        });
    });
    assert!(owner.join().is_err());
    let (pid, dir) = said.recv()?;
    gone(pid, &dir).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_owner_leaves_nothing_of_a_node() -> anyhow::Result<()> {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_aether-node"))
        .arg("hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().context("the owner's output")?).read_line(&mut line)?;
    let (pid, dir) = line.trim().split_once(' ').context("the owner said nothing")?;
    assert!(Path::new(dir).exists());
    // A stopped process holds nothing up either.
    let node = Node::find(Path::new(dir))?.context("the node is not there")?;
    let sleeper = node.spawn("sleeper", "sleep", &["1000"])?;
    sleeper.signal(Signal::STOP);
    owner.kill()?;
    owner.wait()?;
    gone(pid.parse()?, &PathBuf::from(dir)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_can_be_killed_and_its_log_is_kept() -> anyhow::Result<()> {
    let node = Node::start(Options::no_list(Containerd::V2)).await?;
    let mut process = node.spawn("talker", "sh", &["-c", "echo hello; exec sleep 1000"])?;
    wait::until("the log", GONE, async || {
        ensure!(
            process.log()
                == "hello
",
            "{:?}",
            process.log()
        );
        Ok(())
    })
    .await?;
    process.signal(Signal::STOP);
    assert!(process.is_running());
    process.kill();
    assert!(!process.is_running());
    Ok(())
}

#[test]
fn what_is_missing_is_named_with_its_remedy() {
    let remedies: Vec<_> =
        aether_harness::tools::missing(Containerd::V1).into_iter().map(|m| m.remedy).collect();
    assert!(remedies.is_empty(), "this machine lacks what these tests need: {remedies:?}");
    let error = aether_harness::tools::program_under_test("no-such-program").unwrap_err();
    assert!(error.to_string().contains("cargo xtask build"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_left_stays_is_found_and_is_removed_whole() -> anyhow::Result<()> {
    let place = tempfile::tempdir_in("/var/tmp")?;
    let dir = place.path().join("node");
    let node = Node::start_in(dir.clone(), Options::flannel(Containerd::V2)).await?;
    let id = node.cri().run(&Pod::named("prod", "web-0")).await?;
    let pid = node.pid();
    node.leave()?;
    for _ in 0..2 {
        let found = Node::find(&dir)?.context("it did not stay")?;
        assert_eq!((found.pid(), found.version()), (pid, Containerd::V2));
        assert!(found.cri().status(&id).await?.is_ready());
        assert!(
            Node::start_in(dir.clone(), Options::flannel(Containerd::V2)).await.is_err(),
            "two in one directory"
        );
    }
    Node::find(&dir)?.context("it did not stay")?.remove()?;
    assert!(!dir.exists() && !Path::new(&format!("/proc/{pid}")).exists());
    assert!(Node::find(&dir)?.is_none());
    assert!(!Node::remove_dead(&dir)?);
    assert!(Node::remove_dead(place.path()).is_err(), "a directory that is no node's was taken for one");
    Ok(())
}
