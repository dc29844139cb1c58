//! Writers that strip our entry, under a real runtime and the real agent: what they wrote stays, and gets our entry again.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aether_domain::paths::{self, CNI_CONF_DIR};
use aether_harness::cri::Pod;
use aether_harness::lists::{FLANNEL, FLANNEL_FILE, bridge};
use aether_harness::{Agent, Containerd, Signal, wait};
use aether_test_cni::{BRIDGE_CHAIN, CHAIN, Rig, SOON};
use anyhow::{Context as _, ensure};

/// How often each writer strips.
const ROUNDS: usize = 5;
/// For how long a fight is fought.
const FIGHT: Duration = Duration::from_secs(20);
/// Within which a fight's last wait is over.
const TRUCE: Duration = Duration::from_secs(150);
/// A list that sorts before flannel's.
const EARLIER: &str = "05-first.conflist";

/// A file of net.d.
fn path(rig: &Rig, name: &str) -> PathBuf {
    rig.node.path(CNI_CONF_DIR).join(name)
}

/// The plugin types of a list, in order.
fn types(rig: &Rig, name: &str) -> anyhow::Result<Vec<String>> {
    let file = path(rig, name);
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let list: serde_json::Value = serde_json::from_str(&text)?;
    let plugins = list["plugins"].as_array().context("a list of plugins")?;
    Ok(plugins.iter().map(|plugin| plugin["type"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Waits until the list holds exactly these plugins, and until the runtime has loaded them.
async fn repaired(rig: &Rig, name: &str, plugins: &[&str]) -> anyhow::Result<()> {
    wait::until(&format!("{name} with {plugins:?}"), SOON, async || {
        let found = types(rig, name)?;
        ensure!(found == plugins, "it has {found:?}");
        Ok(())
    })
    .await?;
    rig.node.loaded(plugins).await
}

/// A pod through the chain, and nothing left of it.
async fn carries_a_pod(rig: &Rig, name: &str) -> anyhow::Result<()> {
    let id = rig.run(&Pod::named("prod", name)).await?;
    rig.record(&id)?;
    rig.end(&id).await?;
    rig.nothing_left().await
}

/// flannel's list as a writer of round `round` has it: each round another, so that none is taken for the one before.
fn list_of(round: usize) -> String {
    FLANNEL.replace("\"hairpinMode\": true,", &format!("\"hairpinMode\": true, \"round\": {round},"))
}

/// Waits until what the writer wrote in this round stands, with ours.
async fn round_repaired(rig: &Rig, round: usize) -> anyhow::Result<()> {
    wait::until(&format!("the list of round {round}, repaired"), SOON, async || {
        let text = std::fs::read_to_string(path(rig, FLANNEL_FILE))?;
        ensure!(text.contains(&format!("\"round\": {round},")), "what was written is lost: {text}");
        ensure!(types(rig, FLANNEL_FILE)? == CHAIN, "{text}");
        Ok(())
    })
    .await?;
    rig.node.loaded(&CHAIN).await
}

async fn c02_a9_cp_f_over_the_list_as_flannels_init_container_does(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    for round in 0..ROUNDS {
        std::fs::write(rig.node.path("/run/cni-conf.json"), list_of(round))?;
        rig.node.run(&["cp", "-f", "/run/cni-conf.json", &format!("{CNI_CONF_DIR}/{FLANNEL_FILE}")])?;
        round_repaired(&rig, round).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

async fn c02_a2_a_rename_over_the_list_from_inside_and_from_outside(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    for round in 0..ROUNDS {
        let from = if round % 2 == 0 { format!("{CNI_CONF_DIR}/x.tmp") } else { "/etc/cni/x.tmp".to_owned() };
        std::fs::write(rig.node.path(&from), list_of(round))?;
        std::fs::rename(rig.node.path(&from), path(&rig, FLANNEL_FILE))?;
        round_repaired(&rig, round).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

async fn c02_c04_a_write_in_two_halves_is_waited_for(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    for round in 0..ROUNDS {
        let list = list_of(round);
        let (first, second) = list.split_at(list.len() / 2);
        let mut file = std::fs::File::create(path(&rig, FLANNEL_FILE))?;
        file.write_all(first.as_bytes())?;
        // pause: the writer's pause is what is tested; nothing is synchronised by it.
        tokio::time::sleep(Duration::from_millis(300)).await;
        ensure!(std::fs::read_to_string(path(&rig, FLANNEL_FILE))? == first, "a half was repaired");
        file.write_all(second.as_bytes())?;
        drop(file);
        round_repaired(&rig, round).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

async fn c02_a_writer_that_holds_the_old_file_open_across_our_rename_loses_nothing(
    containerd: Containerd,
) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let (rig, _agent) = Rig::chained(containerd).await?;
    for round in 0..ROUNDS {
        let mut file = std::fs::File::create(path(&rig, FLANNEL_FILE))?;
        file.write_all(FLANNEL.as_bytes())?;
        let held = file.metadata()?.ino();
        // Repaired while it is still open: the name stands for another file now.
        wait::until("the repair under the writer's hands", SOON, async || {
            ensure!(std::fs::metadata(path(&rig, FLANNEL_FILE))?.ino() != held, "not renamed yet");
            Ok(())
        })
        .await?;
        std::io::Seek::rewind(&mut file)?;
        file.set_len(0)?;
        file.write_all(list_of(round).as_bytes())?;
        drop(file);
        round_repaired(&rig, round).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

async fn c02_a_list_that_is_deleted_and_made_again(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    for round in 0..ROUNDS {
        std::fs::remove_file(path(&rig, FLANNEL_FILE))?;
        std::fs::write(path(&rig, FLANNEL_FILE), list_of(round))?;
        round_repaired(&rig, round).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

async fn c05_a_new_file_that_sorts_earlier_gets_the_entry(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    rig.node.write_list(EARLIER, &bridge("first", Some("0.4.0")))?;
    repaired(&rig, EARLIER, &BRIDGE_CHAIN).await?;
    carries_a_pod(&rig, "web-0").await?;
    std::fs::remove_file(path(&rig, EARLIER))?;
    repaired(&rig, FLANNEL_FILE, &CHAIN).await
}

async fn i06_c05_a_single_configuration_instead_of_the_list(containerd: Containerd) -> anyhow::Result<()> {
    const CONF: &str = "10-bridge.conf";
    const DERIVED: &str = "00-aether-10-bridge.conf.conflist";
    let (rig, _agent) = Rig::chained(containerd).await?;
    let list: serde_json::Value = serde_json::from_str(&bridge("cbr0", None))?;
    let mut conf = list["plugins"][0].clone();
    conf["name"] = "cbr0".into();
    conf["cniVersion"] = "0.4.0".into();
    let text = conf.to_string();
    rig.node.write_list(CONF, &text)?;
    std::fs::remove_file(path(&rig, FLANNEL_FILE))?;
    let chain = ["bridge", paths::PLUGIN];
    repaired(&rig, DERIVED, &chain).await?;
    ensure!(std::fs::read_to_string(path(&rig, CONF))? == text, "the source was edited");
    carries_a_pod(&rig, "web-0").await?;
    // It follows its source.
    conf["mtu"] = 1400.into();
    rig.node.write_list(CONF, &conf.to_string())?;
    wait::until("the derived list of the new source", SOON, async || {
        ensure!(std::fs::read_to_string(path(&rig, DERIVED))?.contains("1400"), "the old one");
        Ok(())
    })
    .await?;
    repaired(&rig, DERIVED, &chain).await?;
    // Its owner ships a list again.
    std::fs::remove_file(path(&rig, CONF))?;
    rig.node.write_list(FLANNEL_FILE, FLANNEL)?;
    repaired(&rig, FLANNEL_FILE, &CHAIN).await?;
    ensure!(!path(&rig, DERIVED).exists(), "the derived list outlived its source");
    carries_a_pod(&rig, "web-1").await
}

/// Removes everything in net.d, hidden files too.
fn wipe(rig: &Rig) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(rig.node.path(CNI_CONF_DIR))? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// Waits until the agent has written down what it observed healthy.
async fn remembered(rig: &Rig) -> anyhow::Result<()> {
    wait::until("chain.json", SOON, async || {
        ensure!(rig.node.path(paths::STATE_DIR).join(paths::CHAIN).exists(), "not there");
        Ok(())
    })
    .await
}

async fn c03_a_wiped_net_d_is_repaired_also_by_an_agent_that_starts_afterwards(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    remembered(&rig).await?;
    wipe(&rig)?;
    rig.node.write_list(FLANNEL_FILE, FLANNEL)?;
    repaired(&rig, FLANNEL_FILE, &CHAIN).await?;
    agent.kill();
    wipe(&rig)?;
    rig.node.write_list(FLANNEL_FILE, FLANNEL)?;
    rig.node.loaded(&["flannel", "portmap"]).await?;
    let _agent = rig.node.start_agent().await?;
    repaired(&rig, FLANNEL_FILE, &CHAIN).await?;
    carries_a_pod(&rig, "web-0").await
}

async fn c01_c03_a_net_d_that_is_replaced_as_a_whole_is_repaired(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (mut rig, _agent) = Rig::chained(containerd).await?;
    remembered(&rig).await?;
    std::fs::rename(rig.node.path(CNI_CONF_DIR), rig.node.path("/etc/cni/old"))?;
    std::fs::create_dir(rig.node.path(CNI_CONF_DIR))?;
    std::fs::write(path(&rig, FLANNEL_FILE), FLANNEL)?;
    wait::until("the list in the new directory, repaired", SOON, async || {
        ensure!(types(&rig, FLANNEL_FILE)? == CHAIN, "stripped");
        Ok(())
    })
    .await?;
    // containerd 2 has ended, 1.6 is blind: both have to be started again.
    if containerd == Containerd::V2 {
        rig.node.containerd()?.ended(SOON)?;
    }
    rig.node.kill_containerd()?;
    rig.node.start_containerd().await?;
    rig.cri = rig.node.cri();
    rig.node.loaded(&CHAIN).await?;
    carries_a_pod(&rig, "web-0").await?;
    std::fs::write(path(&rig, FLANNEL_FILE), list_of(1))?;
    round_repaired(&rig, 1).await
}

async fn c06_a5_a_writer_that_undoes_each_repair_is_answered_ever_later_and_named(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let (rig, agent) = Rig::chained(containerd).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let undone = Arc::new(AtomicUsize::new(0));
    let (file, halt, count) = (path(&rig, FLANNEL_FILE), stop.clone(), undone.clone());
    let writer = std::thread::spawn(move || {
        while !halt.load(Ordering::Relaxed) {
            if std::fs::read_to_string(&file).is_ok_and(|text| text.contains(paths::PLUGIN)) {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = std::fs::write(&file, FLANNEL);
            }
            // pause: the writer's own poll.
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let start = Instant::now();
    let named = wait::until("the fight being told", FIGHT, async || {
        ensure!(agent.log().contains("ConflistFight"), "not told: {}", agent.log());
        Ok(())
    })
    .await;
    // pause: the fight goes on for as long, which is what is tested
    tokio::time::sleep(FIGHT.saturating_sub(start.elapsed())).await;
    let rounds = undone.load(Ordering::Relaxed);
    stop.store(true, Ordering::Relaxed);
    writer.join().ok();
    named?;
    // Five at once, then after 0.5, 1, 2, 4, 8 s: eleven or so in 20 s; without a back-off there would be hundreds.
    let log = agent.log();
    ensure!((6..=14).contains(&rounds), "{rounds} repairs were undone in {FIGHT:?}: {log}");
    ensure!(log.matches("ConflistFight").count() == 1, "told more than once: {log}");
    ensure!(log.contains(FLANNEL_FILE) && log.contains("uid 0"), "file and owner are not named: {log}");
    // Once the writer rests, the entry is back and stays.
    wait::until("the last repair", TRUCE, async || {
        ensure!(types(&rig, FLANNEL_FILE)? == CHAIN, "stripped");
        Ok(())
    })
    .await?;
    rig.node.loaded(&CHAIN).await?;
    carries_a_pod(&rig, "web-0").await
}

async fn c05_c06_two_lists_that_take_turns_are_each_repaired(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    for _ in 0..2 {
        rig.node.write_list(EARLIER, &bridge("first", Some("0.4.0")))?;
        repaired(&rig, EARLIER, &BRIDGE_CHAIN).await?;
        rig.node.write_list(FLANNEL_FILE, FLANNEL)?;
        std::fs::remove_file(path(&rig, EARLIER))?;
        repaired(&rig, FLANNEL_FILE, &CHAIN).await?;
    }
    carries_a_pod(&rig, "web-0").await
}

/// `addDeadlineSeconds` of our entry in flannel's list.
fn deadline(rig: &Rig) -> anyhow::Result<u64> {
    let list: serde_json::Value = serde_json::from_slice(&std::fs::read(path(rig, FLANNEL_FILE))?)?;
    let plugins = list["plugins"].as_array().context("plugins")?;
    let ours = plugins.iter().find(|plugin| plugin["type"] == paths::PLUGIN).context("no entry of ours")?;
    ours["addDeadlineSeconds"].as_u64().context("no deadline in our entry")
}

async fn c03_an_upgrade_is_not_undone_by_the_agent_that_owns_the_node(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig =
        Rig::installed(containerd, &["--install-id", "aether/1", "--add-deadline-seconds", "7"]).await?;
    let _agent = rig.node.start_agent().await?;
    remembered(&rig).await?;
    rig.node.install(&["--install-id", "aether/2", "--add-deadline-seconds", "9"])?;
    ensure!(deadline(&rig)? == 9);
    for round in 0..ROUNDS {
        std::fs::write(path(&rig, FLANNEL_FILE), list_of(round))?;
        round_repaired(&rig, round).await?;
        ensure!(deadline(&rig)? == 9, "the older entry is back");
    }
    Ok(())
}

/// The chain's state as the agent tells it.
fn state(rig: &Rig, more: &[&str]) -> anyhow::Result<String> {
    let mut command = vec!["aetherctl"];
    command.extend(more);
    command.extend(["-o", "json", "chain"]);
    // Its exit code says whether the chain is whole.
    let (program, arguments) = command.split_first().context("a command")?;
    let output = rig.node.command(program).args(arguments).output()?;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| {
        format!("{} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })?;
    Ok(answer["state"].as_str().unwrap_or_default().to_owned())
}

async fn c03_i01_after_an_uninstall_nothing_is_put_back(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, mut agent) = Rig::chained(containerd).await?;
    remembered(&rig).await?;
    rig.node.install(&["uninstall"])?;
    for round in 0..ROUNDS {
        std::fs::write(path(&rig, FLANNEL_FILE), list_of(round))?;
        wait::until("the agent seeing it", SOON, async || {
            let state = state(&rig, &[])?;
            ensure!(state == "uninstalled", "{state}");
            Ok(())
        })
        .await?;
        ensure!(types(&rig, FLANNEL_FILE)? == ["flannel", "portmap"], "round {round}: put back");
    }
    ensure!(agent.is_running(), "{}", agent.log());
    ensure!(
        !rig.node.path(paths::STATE_DIR).join(paths::CHAIN).exists(),
        "what was healthy is still remembered"
    );
    Ok(())
}

async fn c10_the_plugin_comes_back_as_the_wanted_one(containerd: Containerd) -> anyhow::Result<()> {
    let (rig, _agent) = Rig::chained(containerd).await?;
    let plugin = rig.node.path(paths::CNI_BIN_DIR).join(paths::PLUGIN);
    let wanted = std::fs::read(&plugin)?;
    let back = async || {
        wait::until("the plugin's return", SOON, async || {
            ensure!(std::fs::read(&plugin)? == wanted, "another one");
            Ok(())
        })
        .await
    };
    std::fs::remove_file(&plugin)?;
    back().await?;
    std::fs::write(plugin.with_extension("new"), b"#!/bin/sh\nexit 1\n")?;
    std::fs::rename(plugin.with_extension("new"), &plugin)?;
    back().await?;
    carries_a_pod(&rig, "web-0").await
}

async fn c02_a3_a8_a_strip_while_no_agent_ran_is_repaired_at_its_start(
    containerd: Containerd,
) -> anyhow::Result<()> {
    let rig = Rig::installed(containerd, &[]).await?;
    rig.node.write_list(FLANNEL_FILE, FLANNEL)?;
    rig.node.loaded(&["flannel", "portmap"]).await?;
    let _agent = rig.node.start_agent().await?;
    repaired(&rig, FLANNEL_FILE, &CHAIN).await?;
    carries_a_pod(&rig, "web-0").await
}

async fn c07_a_standby_looks_and_writes_nothing_until_it_owns_the_node(
    containerd: Containerd,
) -> anyhow::Result<()> {
    const LOCAL: &str = "/tmp/standby";
    let (rig, mut owner) = Rig::chained(containerd).await?;
    let mut standby: Agent = rig.node.spawn_agent(&["--local-dir", LOCAL])?;
    let socket = format!("{LOCAL}/{}", paths::ADMIN_SOCKET);
    let sees = async |wanted: &str| {
        wait::until(&format!("the standby seeing {wanted:?}"), SOON, async || {
            let state = state(&rig, &["--admin-socket", &socket])?;
            ensure!(state == wanted, "{state}");
            Ok(())
        })
        .await
    };
    sees("chained").await?;
    // The owner is there, and does nothing.
    owner.signal(Signal::STOP);
    std::fs::write(path(&rig, FLANNEL_FILE), list_of(1))?;
    sees("stripped").await?;
    ensure!(types(&rig, FLANNEL_FILE)? == ["flannel", "portmap"], "the standby wrote");
    owner.kill();
    rig.node.serving(&mut standby).await?;
    round_repaired(&rig, 1).await?;
    sees("chained").await
}

both!(
    c02_a9_cp_f_over_the_list_as_flannels_init_container_does,
    c02_a2_a_rename_over_the_list_from_inside_and_from_outside,
    c02_c04_a_write_in_two_halves_is_waited_for,
    c02_a_writer_that_holds_the_old_file_open_across_our_rename_loses_nothing,
    c02_a_list_that_is_deleted_and_made_again,
    c05_a_new_file_that_sorts_earlier_gets_the_entry,
    i06_c05_a_single_configuration_instead_of_the_list,
    c03_a_wiped_net_d_is_repaired_also_by_an_agent_that_starts_afterwards,
    c01_c03_a_net_d_that_is_replaced_as_a_whole_is_repaired,
    c06_a5_a_writer_that_undoes_each_repair_is_answered_ever_later_and_named,
    c05_c06_two_lists_that_take_turns_are_each_repaired,
    c03_an_upgrade_is_not_undone_by_the_agent_that_owns_the_node,
    c03_i01_after_an_uninstall_nothing_is_put_back,
    c10_the_plugin_comes_back_as_the_wanted_one,
    c02_a3_a8_a_strip_while_no_agent_ran_is_repaired_at_its_start,
    c07_a_standby_looks_and_writes_nothing_until_it_owns_the_node,
);
