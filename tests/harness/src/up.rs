//! `up`: a node from nothing to two recorded pods, a repaired list, a denied pod and a roll under load, with the time of each
//! step.

use std::path::Path;
use std::time::{Duration, Instant};

use aether_domain::paths::{CNI_CONF_DIR, PLUGIN};
use aether_harness::cri::{HostPort, Pod, Protocol};
use aether_harness::{Containerd, Node, Options, lists, policy, tools, wait};
use anyhow::{Context as _, bail};

use crate::report::{line, step, title};
use crate::rolls;

/// Within which a strip must be repaired; some milliseconds are usual.
const REPAIR_LIMIT: Duration = Duration::from_secs(10);
/// Within which a policy must be compiled and loaded.
const POLICY_LIMIT: Duration = Duration::from_secs(60);
/// The agent of `up` is a debug build, in which a policy's instance takes more of the processor than in what ships.
const PATIENT: [&str; 2] = ["--policy-budget-ms", "2000"];
/// A policy for the pods of `demo`; those of the steps before have been started by then.
const REQUIRE_TEAM: &str = "world = \"pod-policy\"\nlimits = { call-ms = 500, init-ms = 5000 }\n[settings]\nannotations = { \"example.com/team\" = \"\" }\n";
/// Within which the agent must show both pods' records.
const RECORDS_LIMIT: Duration = Duration::from_secs(10);

/// Starts the node in `dir`, or says that it is up.
pub(crate) async fn run(dir: &Path, containerd: Containerd) -> anyhow::Result<()> {
    if let Some(node) = Node::find(dir)? {
        line(&format!(
            "a node with {} is up in {} (pid {}); nothing is changed",
            node.version().name(),
            dir.display(),
            node.pid()
        ));
        line("  cargo xtask shell    a shell inside it");
        line("  cargo xtask down     removes it");
        return Ok(());
    }
    tools::check(containerd)?;
    for program in aether_harness::PROGRAMS {
        tools::program_under_test(program)?;
    }
    if Node::remove_dead(dir)? {
        line(&format!("removed {}, left by a node that no longer lives", dir.display()));
    }
    // A node lives by its starter until it is left alone, so that an interrupt removes all of it.
    tokio::select! {
        done = build(dir, containerd) => done,
        _ = tokio::signal::ctrl_c() => {
            line("");
            bail!("interrupted; the node is removed")
        }
    }
}

async fn build(dir: &Path, containerd: Containerd) -> anyhow::Result<()> {
    let begin = Instant::now();
    title("Steps");
    let options = Options::flannel(containerd);
    let starting = Node::start_in(dir.to_path_buf(), options);
    let node =
        step(&format!("a node: namespaces, {}, the sandbox image", containerd.name()), starting).await?;
    step("containerd loads flannel's list", node.loaded(&["flannel", "portmap"])).await?;
    let install = async || node.install(&["--install-id", "up"]);
    step("aether-cni-install: binary, wanted state, list", install()).await?;
    step("containerd loads the chain", node.loaded(&["flannel", "portmap", "aether-cni"])).await?;
    let agent = step("aether-agent serves", node.start_agent_with(&PATIENT)).await?;
    let cri = node.cri();
    for pod in pods() {
        let name = format!("pod {}/{} through flannel, portmap, aether-cni", pod.namespace, pod.name);
        step(&name, async { cri.run(&pod).await.with_context(|| format!("{name} could not start")) }).await?;
    }
    let file = node.path(CNI_CONF_DIR).join(lists::FLANNEL_FILE);
    let installed =
        std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let repaired = step("flannel's list written over ours: repaired", repair(&node)).await?;
    let refusal =
        step("pod demo/anonymous, without the annotation that a policy asks for", deny(&node)).await?;
    let records = wait::until("both pods' records", RECORDS_LIMIT, async || {
        let text = node.run(&["aetherctl", "pods"])?;
        anyhow::ensure!(pods().iter().all(|pod| text.contains(&pod.name)), "aetherctl shows {text}");
        Ok(text)
    });
    let records = step("aetherctl shows both records", records).await?;
    line(&format!("  {:<64}{:>7.2} s", "all", begin.elapsed().as_secs_f64()));

    title("What the installer changed in /etc/cni/net.d/10-flannel.conflist");
    line(&diff(&installed));
    title("aetherctl pods");
    line(records.trim_end());
    title("aetherctl chain");
    line(node.run(&["aetherctl", "chain"])?.trim_end());
    title("A strip and its repair");
    line(&format!(
        "  the list was written over without our entry, and held it again after {:.1} ms",
        repaired.as_secs_f64() * 1000.0
    ));
    title("What kubelet would say about pod demo/anonymous");
    line(&refusal);
    title("aetherctl modules");
    line(node.run(&["aetherctl", "modules"])?.trim_end());
    let agent = rolls::once(&node, agent).await?;
    next();
    agent.leave();
    node.leave()
}

/// What flannel's init container does at each restart; how long the entry was away.
async fn repair(node: &Node) -> anyhow::Result<Duration> {
    let file = node.path(CNI_CONF_DIR).join(lists::FLANNEL_FILE);
    std::fs::write(&file, lists::FLANNEL).with_context(|| format!("cannot write {}", file.display()))?;
    let stripped = Instant::now();
    loop {
        let took = stripped.elapsed();
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        if text.contains(PLUGIN) {
            return Ok(took);
        }
        anyhow::ensure!(took < REPAIR_LIMIT, "our entry was not put back within {REPAIR_LIMIT:?}");
        // pause: of the poll, short beside what it measures
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A policy asks for an annotation; what a pod without it is told.
async fn deny(node: &Node) -> anyhow::Result<String> {
    let component = policy::component(policy::REQUIRE_ANNOTATION)?;
    node.put_policy("require-team", REQUIRE_TEAM, &component)?;
    wait::until("the policy", POLICY_LIMIT, async || {
        let text = node.run(&["aetherctl", "modules", "-o", "json"])?;
        let told: serde_json::Value = serde_json::from_str(&text)?;
        let modules = told.get("modules").and_then(serde_json::Value::as_array);
        let has =
            |module: &serde_json::Value, key: &str, value: serde_json::Value| module.get(key) == Some(&value);
        let loaded = modules.into_iter().flatten().any(|module| {
            has(module, "name", "require-team".into()) && has(module, "state", "enabled".into())
        });
        anyhow::ensure!(loaded, "aetherctl shows {text}");
        Ok(())
    })
    .await?;
    match node.cri().run(&Pod::named("demo", "anonymous")).await {
        Ok(id) => bail!("the pod started as {id}, although the policy denies it"),
        Err(status) => Ok(status.message().to_owned()),
    }
}

fn diff(after: &str) -> String {
    let diff = similar::TextDiff::from_lines(lists::FLANNEL, after);
    let text = diff.unified_diff().header("as flannel ships it", "as it is now").to_string();
    text.trim_end().to_owned()
}

fn pods() -> [Pod; 2] {
    let ports = vec![HostPort { host: 30080, container: 8080, protocol: Protocol::Tcp }];
    let annotations = [("config.aether.io/upstreams".to_owned(), "db.demo".to_owned())].into();
    [Pod { ports, annotations, ..Pod::named("demo", "web-0") }, Pod::named("demo", "db-0")]
}

fn next() {
    title("What to try next");
    for (command, what) in [
        ("cargo xtask shell", "a shell inside the node"),
        ("cargo xtask shell aetherctl pods -o json", "both records, whole"),
        ("cargo xtask shell aetherctl chain", "which list the runtime would load, and whether it is chained"),
        ("cargo xtask shell aetherctl conditions", "what readiness is made of"),
        ("cargo xtask roll", "another roll under load"),
        ("cargo xtask shell aetherctl takeover", "how the owner came to own the node"),
        ("cargo xtask shell cat /etc/cni/net.d/10-flannel.conflist", "the list"),
        ("cargo xtask shell aether-cni-install --check", "the chain without an agent"),
        ("cargo xtask shell aether-cni-install uninstall", "the entry goes, byte for byte"),
        ("cargo xtask down", "removes all of it"),
    ] {
        line(&format!("  {command:<60} {what}"));
    }
}
