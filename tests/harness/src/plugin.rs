//! The plugin run as a runtime runs it, without a runtime: the entry of the node's own list, a real namespace, and
//! `prevResult`.

use std::io::Write as _;
use std::process::{Output, Stdio};
use std::time::Duration;

use aether_domain::paths;
use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use crate::load::ANNOTATION;
use crate::node::Node;

/// Where ours are, and the runtime's are not: `ip netns add` would mount the runtime's directory over itself, after which
/// the runtime cannot remove the namespaces that were in it.
const NETNS: &str = "/run/load-netns";

/// One attachment of a pod.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// `CNI_CONTAINERID`.
    pub container: String,
    /// The pod's name; its namespace is `load`.
    pub pod: String,
    /// `CNI_NETNS`.
    pub netns: String,
}

/// The plugin of a node, with the configuration that its list gives it.
#[derive(Debug, Clone)]
pub struct Plugin {
    node: crate::node::Inside,
    config: Value,
    killed_after: Option<Duration>,
}

impl Plugin {
    /// Reads the entry from the node's list, and makes of it what libcni hands the plugin.
    pub fn of(node: &Node) -> anyhow::Result<Self> {
        for name in node.files(paths::CNI_CONF_DIR)? {
            let path = node.path(paths::CNI_CONF_DIR).join(&name);
            let Ok(text) = std::fs::read(&path) else { continue };
            let Ok(list) = serde_json::from_slice::<Value>(&text) else { continue };
            let entries = list.get("plugins").and_then(Value::as_array).into_iter().flatten();
            let mut ours = entries.filter(|entry| entry.get("type").is_some_and(|of| of == paths::PLUGIN));
            if let Some(Value::Object(entry)) = ours.next().cloned() {
                let mut config = entry;
                for key in ["name", "cniVersion"] {
                    if let Some(value) = list.get(key) {
                        config.insert(key.to_owned(), value.clone());
                    }
                }
                let config = Value::Object(config);
                return Ok(Self { node: node.inside(), config, killed_after: None });
            }
        }
        bail!("no list of the node has our entry; install first")
    }

    /// The paths of `count` network namespaces of their own, which are made where they are not there yet.
    pub fn namespaces(node: &Node, count: usize) -> anyhow::Result<Vec<String>> {
        let there = node.files(NETNS)?;
        (0..count)
            .map(|number| {
                let path = format!("{NETNS}/{number}");
                if !there.contains(&number.to_string()) {
                    let script = "mkdir -p \"${1%/*}\" && : >\"$1\" && unshare --net=\"$1\" true";
                    node.run(&["sh", "-c", script, "netns", &path])?;
                }
                Ok(path)
            })
            .collect()
    }

    /// Removes them.
    pub fn forget(node: &Node) -> anyhow::Result<()> {
        for name in node.files(NETNS)? {
            let script = "umount \"$1\" && rm \"$1\"";
            node.run(&["sh", "-c", script, "netns", &format!("{NETNS}/{name}")])?;
        }
        Ok(())
    }

    /// The same plugin, killed where it is when it has run for so long.
    #[must_use]
    pub fn killed_after(&self, limit: Duration) -> Self {
        Self { killed_after: Some(limit), ..self.clone() }
    }

    /// One call, to its end.
    pub fn call(&self, command: &str, to: &Attachment) -> anyhow::Result<Output> {
        let mut config = self.config.clone();
        if command == "ADD" {
            let version = config.get("cniVersion").cloned().unwrap_or_else(|| json!("0.1.0"));
            let of_old = version.as_str().is_some_and(|version| version.starts_with("0."));
            let mut address = json!({"address": "10.244.1.2/24", "gateway": "10.244.1.1", "interface": 0});
            if let (true, Some(address)) = (of_old, address.as_object_mut()) {
                address.insert("version".to_owned(), json!("4"));
            }
            let interfaces = [json!({"name": "eth0", "sandbox": to.netns})];
            let annotations = json!({ANNOTATION.0: ANNOTATION.1});
            if let Some(config) = config.as_object_mut() {
                config.insert(
                    "runtimeConfig".to_owned(),
                    json!({"io.kubernetes.cri.pod-annotations": annotations}),
                );
                config.insert(
                    "prevResult".to_owned(),
                    json!({"cniVersion": version, "interfaces": interfaces, "ips": [address]}),
                );
            }
        }
        let program = format!("{}/{}", paths::CNI_BIN_DIR, paths::PLUGIN);
        let mut exec = match self.killed_after {
            None => self.node.command(&program),
            Some(limit) => self.node.command_killed_after(limit, &program),
        };
        let arguments = format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=load;K8S_POD_NAME={};K8S_POD_UID=uid-{};K8S_POD_INFRA_CONTAINER_ID={}",
            to.pod, to.pod, to.container
        );
        exec.env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", &to.container)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", &to.netns)
            .env("CNI_PATH", paths::CNI_BIN_DIR)
            .env("CNI_ARGS", arguments);
        exec.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = exec.spawn().context("cannot run the plugin inside the node")?;
        let mut stdin = child.stdin.take().context("the plugin's standard input")?;
        // One that was killed reads nothing, and its end says so.
        let _ = stdin.write_all(config.to_string().as_bytes());
        drop(stdin);
        child.wait_with_output().context("cannot wait for the plugin")
    }
}
