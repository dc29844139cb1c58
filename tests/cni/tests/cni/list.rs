//! The list under a real runtime: its versions, its changes between ADD and DEL, installs over installs, uninstalls.

use aether_domain::paths::{self, CNI_CONF_DIR};
use aether_harness::cri::Pod;
use aether_harness::{Containerd, Options, lists};
use aether_test_cni::{BRIDGE_CHAIN, CHAIN, Rig, WITHOUT_REPAIR};
use anyhow::Context as _;

/// The installer's exit code for "not chained", or "no list to take yet".
const NOT_CHAINED: i32 = 3;
/// The installer's exit code for a refusal.
const REFUSED: i32 = 4;

/// Our entries in a list of the node.
fn ours(rig: &Rig, file: &str) -> anyhow::Result<Vec<serde_json::Value>> {
    let text = std::fs::read_to_string(rig.node.path(CNI_CONF_DIR).join(file))?;
    let list: serde_json::Value = serde_json::from_str(&text)?;
    let plugins = list["plugins"].as_array().context("a list of plugins")?;
    Ok(plugins.iter().filter(|plugin| plugin["type"] == paths::PLUGIN).cloned().collect())
}

async fn k01_i04_every_version_of_a_list_carries_a_pod(containerd: Containerd) -> anyhow::Result<()> {
    let mut versions = vec![None, Some("0.3.1"), Some("0.4.0"), Some("1.0.0")];
    if containerd == Containerd::V2 {
        versions.push(Some("1.1.0"));
    }
    let rig = Rig::bare(Options::no_list(containerd)).await?;
    let _agent = rig.node.start_agent_with(&[WITHOUT_REPAIR]).await?;
    for version in versions {
        let list = lists::bridge("cbr0", version);
        rig.node.write_list("10-bridge.conflist", &list)?;
        rig.node.loaded(&["bridge", "portmap"]).await?;
        rig.node.install(&[])?;
        rig.node.loaded(&BRIDGE_CHAIN).await?;
        let name = format!("web-{}", version.unwrap_or("none"));
        let id = rig.run(&Pod::named("prod", &name)).await?;
        let address = rig.cri.status(&id).await?.address().to_owned();
        assert_eq!(rig.record(&id)?.pod.addresses, [format!("{address}/24")], "list {version:?}");
        rig.end(&id).await?;
        rig.nothing_left().await.with_context(|| format!("list {version:?}"))?;
    }
    Ok(())
}

async fn k07_a_list_stripped_between_add_and_del_stops_no_pod_from_going(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained_without_repair(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    rig.node.write_list(lists::FLANNEL_FILE, lists::FLANNEL)?;
    rig.node.loaded(&["flannel", "portmap"]).await?;
    rig.end(&id).await?;
    // The runtime asks the list as it is now, so ours was not called: the record is left to the sweep.
    let residue = rig.residue()?;
    assert!(
        residue.veths.is_empty() && residue.addresses.is_empty() && residue.netns.is_empty(),
        "{residue:?}"
    );
    // And an entry that comes back is asked for pods that it never saw.
    let id = rig.run(&Pod::named("prod", "web-1")).await?;
    rig.node.install(&[])?;
    rig.node.loaded(&CHAIN).await?;
    rig.end(&id).await
}

async fn k08_a_network_renamed_between_add_and_del_loses_no_del(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    assert_eq!(rig.record(&id)?.network.as_str(), "cbr0");
    let file = rig.node.path(CNI_CONF_DIR).join(lists::FLANNEL_FILE);
    let list = std::fs::read_to_string(file)?.replace("cbr0", "cbr9");
    rig.node.write_list(lists::FLANNEL_FILE, &list)?;
    renamed(&rig, "cbr9").await?;
    rig.end(&id).await?;
    rig.consistent().await?;
    let id = rig.run(&Pod::named("prod", "web-1")).await?;
    assert_eq!(rig.record(&id)?.network.as_str(), "cbr9");
    rig.end(&id).await?;
    rig.consistent().await
}

/// Waits until the runtime has a network of that name.
async fn renamed(rig: &Rig, name: &str) -> anyhow::Result<()> {
    aether_harness::wait::until("the network's new name", aether_test_cni::SOON, async || {
        let config = rig.cri.runtime_status().await?.cni_config;
        anyhow::ensure!(config.contains(name), "{config}");
        Ok(())
    })
    .await
}

async fn i09_i01_an_install_over_an_older_one_leaves_exactly_one_entry_and_serves_on(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig =
        Rig::installed(containerd, &["--install-id", "aether/1", "--add-deadline-seconds", "7"]).await?;
    let _agent = rig.node.start_agent().await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    assert_eq!(ours(&rig, lists::FLANNEL_FILE)?[0]["addDeadlineSeconds"], 7);
    rig.node.install(&["--install-id", "aether/2", "--add-deadline-seconds", "9"])?;
    let entries = ours(&rig, lists::FLANNEL_FILE)?;
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0]["addDeadlineSeconds"], 9);
    rig.node.install(&["--check"])?;
    rig.node.loaded(&CHAIN).await?;
    rig.end(&id).await?;
    let id = rig.run(&Pod::named("prod", "web-1")).await?;
    rig.consistent().await?;
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn i01_k06_after_an_uninstall_live_pods_go_cleanly_and_new_ones_start_unmanaged(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    let old = rig.run(&Pod::named("prod", "old")).await?;
    rig.node.install(&["uninstall"])?;
    rig.node.loaded(&["flannel", "portmap"]).await?;
    assert!(agent.is_running(), "{}", agent.log());
    let new = rig.run(&Pod::named("prod", "new")).await?;
    assert!(!rig.node.records()?.contains_key(&new.0));
    agent.kill();
    for id in [&old, &new] {
        rig.end(id).await?;
    }
    let residue = rig.residue()?;
    assert!(
        residue.veths.is_empty() && residue.addresses.is_empty() && residue.netns.is_empty(),
        "{residue:?}"
    );
    assert!(residue.tombstones.is_empty(), "{residue:?}");
    Ok(())
}

async fn k06_i01_a_runtime_that_still_has_the_old_list_passes_through_once_uninstalled(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &["--add-deadline-seconds", "30"]).await?;
    let chained = std::fs::read_to_string(rig.node.path(CNI_CONF_DIR).join(lists::FLANNEL_FILE))?;
    rig.node.install(&["uninstall"])?;
    // As a primary CNI would that had kept a copy of the chained list.
    rig.node.write_list(lists::FLANNEL_FILE, &chained)?;
    rig.node.loaded(&CHAIN).await?;
    let begin = std::time::Instant::now();
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    assert!(begin.elapsed().as_secs() < 10, "it waited for an agent: {:?}", begin.elapsed());
    rig.end(&id).await?;
    rig.nothing_left().await
}

async fn i04_the_installer_takes_the_list_that_the_runtime_takes(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::bare(Options::flannel(containerd)).await?;
    rig.node.write_list("87-podman.conflist", &lists::bridge("podman", Some("0.4.0")))?;
    rig.node.write_list("100-crio-bridge.conflist", &lists::bridge("crio", Some("0.4.0")))?;
    // "10-flannel" sorts before "100-crio-bridge", which sorts before "87-podman".
    rig.node.install(&[])?;
    rig.node.loaded(&CHAIN).await?;
    rig.node.write_list("05-first.conflist", &lists::bridge("first", Some("0.4.0")))?;
    rig.node.loaded(&["bridge", "portmap"]).await?;
    let check = rig.node.installer(&["--check"])?;
    assert_eq!(check.status.code(), Some(NOT_CHAINED), "{check:?}");
    rig.node.install(&[])?;
    rig.node.loaded(&BRIDGE_CHAIN).await?;
    assert_eq!(ours(&rig, "05-first.conflist")?.len(), 1);
    assert!(ours(&rig, "87-podman.conflist")?.is_empty());
    Ok(())
}

async fn i05_c04_a_list_that_the_runtime_refuses_is_left_alone(containerd: Containerd) -> anyhow::Result<()> {
    let rig = Rig::bare(Options::flannel(containerd)).await?;
    let broken = "{\"name\": \"x\", \"plugins\": [{\"type\": \"bridge\"},]}\n";
    rig.node.write_list("05-broken.conflist", broken)?;
    let output = rig.node.installer(&["--no-wait"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("05-broken.conflist"), "{said}");
    assert_eq!(std::fs::read_to_string(rig.node.path(CNI_CONF_DIR).join("05-broken.conflist"))?, broken);
    assert_eq!(
        std::fs::read_to_string(rig.node.path(CNI_CONF_DIR).join(lists::FLANNEL_FILE))?,
        lists::FLANNEL
    );
    assert!(!rig.cri.runtime_status().await?.network_ready());
    Ok(())
}

async fn i04_a_foreign_drop_in_is_respected_and_one_of_ours_is_refused(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::bare(Options::flannel(containerd)).await?;
    let dropped = rig.node.path(CNI_CONF_DIR).join("cbr0");
    std::fs::create_dir(&dropped)?;
    std::fs::write(
        dropped.join("50-more.conf"),
        r#"{"type": "portmap", "capabilities": {"portMappings": true}}"#,
    )?;
    rig.node.install(&[])?;
    // Only libcni 1.3 appends drop-ins.
    match containerd {
        Containerd::V1 => rig.node.loaded(&CHAIN).await?,
        Containerd::V2 => rig.node.loaded(&["flannel", "portmap", paths::PLUGIN, "portmap"]).await?,
    }
    let _agent = rig.node.start_agent().await?;
    let id = rig.run(&Pod::named("prod", "web-0")).await?;
    rig.consistent().await?;
    rig.end(&id).await?;
    rig.nothing_left().await?;

    std::fs::write(dropped.join("60-ours.conf"), r#"{"type": "aether-cni"}"#)?;
    let output = rig.node.installer(&["--no-wait"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(REFUSED), "{said}");
    assert!(said.contains("60-ours.conf"), "{said}");
    assert!(dropped.join("60-ours.conf").exists());
    Ok(())
}

async fn i03_the_network_is_ready_throughout_forty_installs_and_uninstalls(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::bare(Options::flannel(containerd)).await?;
    rig.node.install(&[])?;
    let cri = rig.cri.clone();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = done.clone();
    let watcher = tokio::spawn(async move {
        let mut looks = 0;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            let status = cri.runtime_status().await?;
            anyhow::ensure!(
                status.network_ready(),
                "not ready: {:?} {}",
                status.network(),
                status.last_cni_load
            );
            looks += 1;
        }
        Ok(looks)
    });
    for _ in 0..20 {
        for arguments in [["uninstall", "--install-id", "x"].as_slice(), &["--install-id", "x", "--force"]] {
            let output = rig.node.command(aether_harness::INSTALLER).args(arguments).output()?;
            assert!(output.status.success(), "{output:?}");
        }
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(watcher.await?? > 0);
    rig.node.loaded(&CHAIN).await
}

both!(
    k01_i04_every_version_of_a_list_carries_a_pod,
    k07_a_list_stripped_between_add_and_del_stops_no_pod_from_going,
    k08_a_network_renamed_between_add_and_del_loses_no_del,
    i09_i01_an_install_over_an_older_one_leaves_exactly_one_entry_and_serves_on,
    i01_k06_after_an_uninstall_live_pods_go_cleanly_and_new_ones_start_unmanaged,
    k06_i01_a_runtime_that_still_has_the_old_list_passes_through_once_uninstalled,
    i04_the_installer_takes_the_list_that_the_runtime_takes,
    i05_c04_a_list_that_the_runtime_refuses_is_left_alone,
    i04_a_foreign_drop_in_is_respected_and_one_of_ours_is_refused,
    i03_the_network_is_ready_throughout_forty_installs_and_uninstalls,
);
