//! The list and the plugin put back by the running agent: C01 to C10.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use aether_domain::limits::CHAIN_POLL;
use sha2::{Digest as _, Sha256};

use crate::calls::admin;
use crate::support::{Agent, Node, PATIENCE, tree, until};

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni"}"#;
const NEWER: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/other.sock"}"#;
const FILE: &str = "10-flannel.conflist";
const STRIPPED: &str = "{\n  \"name\": \"cbr0\",\n  \"cniVersion\": \"0.3.1\",\n  \"plugins\": [\n    {\n      \"type\": \"flannel\"\n    }\n  ]\n}\n";
const PLUGIN: &[u8] = b"the plugin";

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn want(node: &Node, entry: &str) {
    let hash = sha256(PLUGIN);
    let wanted = format!(
        r#"{{"format":1,"oldestReader":1,"entry":{entry},"pluginSha256":"{hash}","installId":"rel/7","firstInstalled":1}}"#
    );
    replace(node, ".aether-cni-entry", wanted.as_bytes());
}

/// Renames over, as careful writers do.
fn replace(node: &Node, name: &str, bytes: &[u8]) {
    let temp = node.conf(".writer");
    std::fs::write(&temp, bytes).unwrap();
    std::fs::rename(temp, node.conf(name)).unwrap();
}

fn executable(node: &Node, below: &str, bytes: &[u8]) {
    let path = node.path(below);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A node as the installer leaves it, and its owner.
fn installed() -> (Node, Agent) {
    let node = Node::new();
    want(&node, ENTRY);
    executable(&node, "bin/aether-cni", PLUGIN);
    executable(&node, "image/aether-cni", PLUGIN);
    replace(&node, FILE, STRIPPED.as_bytes());
    let agent = node.start("a");
    agent.logged("enabled the modules");
    (node, agent)
}

fn types(node: &Node, name: &str) -> Result<Vec<String>, String> {
    let text = std::fs::read(node.conf(name)).map_err(|error| error.to_string())?;
    let list: serde_json::Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let plugins = list["plugins"].as_array().cloned().unwrap_or_default();
    Ok(plugins.iter().map(|plugin| plugin["type"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Waits until the list holds our entry, last and once.
fn chained(node: &Node, name: &str) {
    until("the entry in the list", || {
        let types = types(node, name)?;
        let ours = types.iter().filter(|one| *one == "aether-cni").count();
        let is = ours == 1 && types.last().is_some_and(|last| last == "aether-cni");
        if is { Ok(()) } else { Err(format!("{types:?}")) }
    });
}

/// A4: ours is there, but not as it is wanted.
#[test]
fn c02_an_entry_that_was_altered_doubled_or_moved_to_the_front_is_made_what_is_wanted() {
    let (node, agent) = installed();
    chained(&node, FILE);
    let first = std::fs::read_to_string(node.conf(FILE)).unwrap();
    let list: serde_json::Value = serde_json::from_str(&first).unwrap();
    let with = |change: &dyn Fn(&mut Vec<serde_json::Value>)| {
        let mut list = list.clone();
        change(list["plugins"].as_array_mut().unwrap());
        serde_json::to_vec(&list).unwrap()
    };
    let altered = with(&|plugins| plugins.last_mut().unwrap()["agentSocket"] = "/elsewhere.sock".into());
    let doubled = with(&|plugins| plugins.push(plugins.last().unwrap().clone()));
    let first_of_all = with(&|plugins| plugins.rotate_right(1));
    for (how, bytes) in [("altered", altered), ("doubled", doubled), ("first", first_of_all)] {
        replace(&node, FILE, &bytes);
        until(how, || {
            let text = std::fs::read(node.conf(FILE)).map_err(|error| error.to_string())?;
            let is: serde_json::Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
            if is == list { Ok(()) } else { Err(format!("{is}\n{}", agent.lines().join("\n"))) }
        });
    }
}

/// Stripped is what the link names, by a writer whom no watch on net.d sees; and the link itself is what is replaced.
#[test]
fn i02_c02_a_list_behind_a_link_is_repaired_at_its_target_and_stays_a_link() {
    let (node, _agent) = installed();
    chained(&node, FILE);
    let first = std::fs::read(node.conf(FILE)).unwrap();
    let target = node.path("lists/real.conflist");
    std::fs::create_dir(node.path("lists")).unwrap();
    std::fs::rename(node.conf(FILE), &target).unwrap();
    std::os::unix::fs::symlink("../lists/real.conflist", node.conf(FILE)).unwrap();
    chained(&node, FILE);
    for in_place in [true, false] {
        if in_place {
            std::fs::write(&target, STRIPPED).unwrap();
        } else {
            let temp = target.with_extension("new");
            std::fs::write(&temp, STRIPPED).unwrap();
            std::fs::rename(temp, &target).unwrap();
        }
        chained(&node, FILE);
        assert_eq!(std::fs::read(&target).unwrap(), first);
        assert!(node.conf(FILE).is_symlink());
    }
}

#[test]
fn c02_whatever_way_the_entry_is_taken_it_is_put_back_and_all_other_bytes_stay() {
    let (node, _agent) = installed();
    chained(&node, FILE);
    let first = std::fs::read(node.conf(FILE)).unwrap();
    let path = node.conf(FILE);
    let writers: [(&str, &dyn Fn()); 4] = [
        ("renamed over", &|| replace(&node, FILE, STRIPPED.as_bytes())),
        ("written in place", &|| std::fs::write(&path, STRIPPED).unwrap()),
        ("removed and made again", &|| {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, STRIPPED).unwrap();
        }),
        ("written in two halves", &|| {
            let mut file = std::fs::File::create(&path).unwrap();
            file.write_all(&STRIPPED.as_bytes()[..40]).unwrap();
            // pause: as long as a slow writer takes; what is half written must be left alone meanwhile
            std::thread::sleep(Duration::from_millis(300));
            file.write_all(&STRIPPED.as_bytes()[40..]).unwrap();
        }),
    ];
    for (how, strip) in writers {
        // Apart, so that no writer here is taken for one that fights.
        let began = Instant::now();
        strip();
        chained(&node, FILE);
        assert!(began.elapsed() < Duration::from_secs(10), "{how}: {:?}", began.elapsed());
        assert_eq!(std::fs::read(&path).unwrap(), first, "{how}: the list is as after the first repair");
    }
}

#[test]
fn c03_a_new_wanted_entry_is_what_is_put_in_and_never_undone() {
    let (node, _agent) = installed();
    chained(&node, FILE);
    want(&node, NEWER);
    until("the new entry", || {
        let text = std::fs::read_to_string(node.conf(FILE)).map_err(|error| error.to_string())?;
        if text.contains("other.sock") { Ok(()) } else { Err(text) }
    });
    replace(&node, FILE, STRIPPED.as_bytes());
    chained(&node, FILE);
    assert!(std::fs::read_to_string(node.conf(FILE)).unwrap().contains("other.sock"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c03_uninstalled_nothing_is_put_back() {
    let (node, agent) = installed();
    chained(&node, FILE);
    std::fs::write(node.state("uninstalled"), r#"{"format":1,"oldestReader":1,"uninstalledAt":1}"#).unwrap();
    replace(&node, FILE, STRIPPED.as_bytes());
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    let mut asked = admin(&agent).await;
    settled(&mut asked, "uninstalled").await;
    assert_eq!(std::fs::read_to_string(node.conf(FILE)).unwrap(), STRIPPED);
    assert!(!node.path("bin/aether-cni").exists());
    assert!(asked.conditions().await.ready, "uninstalled is no cause for not being ready (C08)");
}

/// Waits until the agent has seen this state and looked once more since.
async fn settled(asked: &mut crate::calls::Admin, state: &str) {
    let began = Instant::now();
    let mut first = None;
    loop {
        let seen = asked.chain().await;
        if seen.state == state {
            let first = *first.get_or_insert(seen.checked_at);
            if seen.checked_at > first {
                return;
            }
        }
        assert!(began.elapsed() < PATIENCE, "never {state}; last: {seen:?}");
        // pause: between two looks of a poll with a deadline
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a condition has been so for so long.
async fn until_held(asked: &mut crate::calls::Admin, name: &str, long: Duration) {
    let began = Instant::now();
    loop {
        let seen = asked.conditions().await.conditions;
        let held = seen.iter().find(|one| one.name == name).map_or(0, |one| one.held_ms);
        if Duration::from_millis(held) >= long {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "never {name} for {long:?}; last: {seen:?}");
        // pause: between two looks of a poll with a deadline
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn c03_a_wiped_directory_is_repaired_by_what_was_observed_healthy_also_by_the_next_agent() {
    let (node, agent) = installed();
    chained(&node, FILE);
    until("chain.json", || std::fs::read(node.state("chain.json")).map_err(|error| error.to_string()));
    agent.kill();
    std::fs::remove_file(node.conf(".aether-cni-entry")).unwrap();
    replace(&node, FILE, STRIPPED.as_bytes());
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    let agent = node.start("a");
    agent.logged("enabled the modules");
    chained(&node, FILE);
    until("the plugin", || std::fs::read(node.path("bin/aether-cni")).map_err(|error| error.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c04_a_list_that_is_not_valid_is_waited_for() {
    let (node, agent) = installed();
    chained(&node, FILE);
    let mut asked = admin(&agent).await;
    for bytes in ["", "{", "{} trailing"] {
        replace(&node, FILE, bytes.as_bytes());
        settled(&mut asked, "invalid").await;
        assert_eq!(std::fs::read_to_string(node.conf(FILE)).unwrap(), bytes);
    }
    replace(&node, FILE, STRIPPED.as_bytes());
    chained(&node, FILE);
}

#[test]
fn c05_a_file_that_sorts_earlier_gets_the_entry() {
    let (node, _agent) = installed();
    chained(&node, FILE);
    let cilium = r#"{"name":"cilium","cniVersion":"0.3.1","plugins":[{"type":"cilium-cni"}]}"#;
    replace(&node, "05-cilium.conflist", cilium.as_bytes());
    chained(&node, "05-cilium.conflist");
}

#[test]
fn c05_i06_a_single_configuration_that_sorts_earlier_is_derived_from_and_stays() {
    let (node, _agent) = installed();
    chained(&node, FILE);
    let single = r#"{"name":"b","cniVersion":"0.3.1","type":"bridge"}"#;
    replace(&node, "05-bridge.conf", single.as_bytes());
    chained(&node, "00-aether-05-bridge.conf.conflist");
    assert_eq!(std::fs::read_to_string(node.conf("05-bridge.conf")).unwrap(), single);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c06_a_writer_that_undoes_each_repair_is_answered_ever_later_and_told_of_once() {
    let (node, agent) = installed();
    let mut asked = admin(&agent).await;
    let began = Instant::now();
    let mut undone = 0;
    let fight = loop {
        let ours = types(&node, FILE).is_ok_and(|types| types.iter().any(|one| one == "aether-cni"));
        if ours {
            undone += 1;
            replace(&node, FILE, STRIPPED.as_bytes());
        }
        if let Some(fight) = asked.events().await.into_iter().find(|event| event.reason == "ConflistFight") {
            break fight;
        }
        assert!(began.elapsed() < PATIENCE, "no event after {undone} repairs");
        // pause: between two looks of a poll with a deadline
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!((fight.about.as_str(), fight.count), (FILE, 1), "{fight:?}");
    for part in ["uid 0", "flannel, aether-cni", "after theirs: flannel"] {
        assert!(fight.message.contains(part), "{part} is not in {}", fight.message);
    }
    let module = asked.module("conflist-reassert", "fighting", |module| !module.note.is_empty()).await;
    assert!(module.note.contains("fight"), "{module:?}");
    let chained = asked.conditions().await.conditions.into_iter().find(|one| one.name == "chained").unwrap();
    assert_eq!(chained.state, "no", "a fight counts as unchained");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c07_a_standby_sees_a_strip_and_writes_nothing_and_repairs_it_once_it_owns() {
    let (node, owner) = installed();
    chained(&node, FILE);
    let standby = node.start("b");
    let mut asked = admin(&standby).await;
    settled(&mut asked, "chained").await;
    owner.signal(rustix::process::Signal::STOP);
    replace(&node, FILE, STRIPPED.as_bytes());
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    let before: Vec<_> = ["net.d", "bin", "state"].map(|below| tree(&node.path(below))).into();
    settled(&mut asked, "stripped").await;
    let after: Vec<_> = ["net.d", "bin", "state"].map(|below| tree(&node.path(below))).into();
    assert_eq!(after, before, "a standby wrote");
    owner.kill();
    chained(&node, FILE);
    until("the plugin", || std::fs::read(node.path("bin/aether-cni")).map_err(|error| error.to_string()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_unrepairably_unchained_for_three_rechecks_is_not_ready_with_the_reason() {
    let (node, agent) = installed();
    chained(&node, FILE);
    let mut asked = admin(&agent).await;
    settled(&mut asked, "chained").await;
    // A state counts once it has held for a whole re-check.
    until_held(&mut asked, "chained", CHAIN_POLL).await;
    let began = Instant::now();
    replace(&node, FILE, b"{");
    let answer = loop {
        let answer = asked.conditions().await;
        if !answer.ready {
            break answer;
        }
        assert!(began.elapsed() < 10 * Duration::from_secs(15), "{answer:?}");
        // pause: between two looks of a poll with a deadline
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(began.elapsed() >= Duration::from_secs(14), "three re-checks: {:?}", began.elapsed());
    assert!(answer.reason.contains("invalid") && answer.reason.contains(FILE), "{answer:?}");
    let (code, probed) = crate::calls::readiness(&agent);
    assert!(code == 503 && probed.contains(&answer.reason), "the probe says the same: {probed}");
    agent.logged("does not let this agent be ready");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c09_switched_off_nothing_is_repaired() {
    let node = Node::new();
    want(&node, ENTRY);
    replace(&node, FILE, STRIPPED.as_bytes());
    let agent = node.start_with("a", &["--cni-conflist-reassert=false"]);
    agent.logged("enabled the modules");
    let mut asked = admin(&agent).await;
    settled(&mut asked, "stripped").await;
    assert_eq!(std::fs::read_to_string(node.conf(FILE)).unwrap(), STRIPPED);
    assert!(!node.path("bin/aether-cni").exists());
    let all = asked.modules().await;
    assert!(!all.modules.iter().any(|module| module.name == "conflist-reassert"), "{all:?}");
}

#[test]
fn c10_the_plugin_is_put_back_when_it_goes_or_changes_and_only_towards_the_wanted_hash() {
    let (node, agent) = installed();
    let right = || {
        until("the plugin", || {
            let bytes = std::fs::read(node.path("bin/aether-cni")).map_err(|error| error.to_string())?;
            if bytes == PLUGIN { Ok(()) } else { Err(String::from_utf8_lossy(&bytes).into_owned()) }
        });
    };
    right();
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    right();
    executable(&node, "bin/aether-cni", b"another");
    right();
    executable(&node, "image/aether-cni", b"of another release");
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    let line = agent.logged("a module's action is not done");
    assert!(line.contains("restore-plugin"), "{line}");
    assert!(!node.path("bin/aether-cni").exists());
}

/// What cannot be done is tried again at leisure: each attempt has the list looked at, and that look must not cause the next.
#[tokio::test]
async fn c10_a_plugin_that_cannot_be_put_back_keeps_no_processor_busy() {
    let (node, agent) = installed();
    executable(&node, "image/aether-cni", b"of another release");
    std::fs::remove_file(node.path("bin/aether-cni")).unwrap();
    let began = Instant::now();
    let failed = |module: &aether_api::admin::Module| {
        let of = module.actions.iter().filter(|actions| actions.action == "restore-plugin");
        of.filter(|actions| actions.outcome == "failed").map(|actions| actions.count).sum::<u64>()
    };
    admin(&agent).await.module("conflist-reassert", "eight attempts", |module| failed(module) >= 8).await;
    // 50 ms lie between the first two, twice as long between each next (M03).
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    executable(&node, "image/aether-cni", PLUGIN);
    until("the plugin", || {
        if node.path("bin/aether-cni").exists() { Ok(()) } else { Err("there is none".to_owned()) }
    });
}
