//! What an engine begins with: the lists and calls of the other tests' fixtures, and one of each of our files and messages.

use std::path::Path;

use aether_domain::takeover::codec::encode;
use aether_test_libcni::fixtures;
use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::{Value, json};

use crate::targets::list::ENTRY;
use crate::targets::request::VARIABLES;

/// What lists are made of.
pub(crate) const LIST_WORDS: &[&str] = &[
    "\"name\"",
    "\"Name\"",
    "\"type\"",
    "\"tYpe\"",
    "\"t\\u0079pe\"",
    "\"plugins\"",
    "\"Plugins\"",
    "\"cniVersion\"",
    "\"cniVersions\"",
    "\"cniVer\u{17f}ion\"",
    "\"disableCheck\"",
    "\"disableGC\"",
    "\"loadOnlyInlinedPlugins\"",
    "\"capabilities\"",
    "\"prevResult\"",
    "\"ipam\"",
    "\"dns\"",
    "\"cni.dev/valid-attachments\"",
    "\"aether-cni\"",
    "\"loopback\"",
    "{\"type\":\"aether-cni\"}",
    ",{\"type\":\"x\"}",
    "\"0.3.1\"",
    "\"1.0.0\"",
    "\"1.1.0\"",
    "\"1.2.0\"",
    "null",
    "true",
    "1e999",
    "-0",
    "\\ud800",
    "\\ud83d\\ude00",
    "\u{feff}",
    "\r\n",
];

/// What calls of the plugin are made of.
pub(crate) const REQUEST_WORDS: &[&str] = &[
    "\"cniVersion\"",
    "\"prevResult\"",
    "\"runtimeConfig\"",
    "\"io.kubernetes.cri.pod-annotations\"",
    "\"portMappings\"",
    "\"HostPort\"",
    "\"containerPort\"",
    "\"protocol\"",
    "\"interfaces\"",
    "\"ips\"",
    "\"ip4\"",
    "\"ip6\"",
    "\"address\"",
    "\"interface\"",
    "\"agentSocket\"",
    "\"stateDir\"",
    "\"addDeadlineSeconds\"",
    "\"ignoredNamespaces\"",
    "\"releaseNamespace\"",
    "\"managed\"",
    "\"opt-in\"",
    "\"logLevel\"",
    "\"cni.dev/valid-attachments\"",
    "\"cni.dev/attachments\"",
    "\"containerID\"",
    "\"ifname\"",
    "K8S_POD_NAMESPACE=",
    "K8S_POD_NAME=",
    "K8S_POD_UID=",
    "kube-system",
    "aether.io/managed",
    "not found",
    "null",
    "1e999",
    "-1",
    "\\ud800",
];

/// What our files are made of.
pub(crate) const STATE_WORDS: &[&str] = &[
    "\"format\"",
    "\"oldestReader\"",
    "\"container\"",
    "\"interface\"",
    "\"network\"",
    "\"started\"",
    "\"bootId\"",
    "\"boottimeNs\"",
    "\"requestId\"",
    "\"managed\"",
    "\"yes\"",
    "\"opted-out\"",
    "\"netns\"",
    "\"pod\"",
    "\"annotations\"",
    "\"hostPorts\"",
    "\"policyLabels\"",
    "\"entry\"",
    "\"pluginSha256\"",
    "\"installId\"",
    "\"firstInstalled\"",
    "\"uninstalledAt\"",
    "\"observedAt\"",
    "\"upstreams\"",
    "null",
    "1e999",
    "0.1",
    "-0.0",
    "18446744073709551615",
    "\\ud800",
];

/// What the hand-over's messages are made of.
pub(crate) const MESSAGE_WORDS: &[&str] = &[
    "\"type\"",
    "\"hello\"",
    "\"complete\"",
    "\"ready\"",
    "\"locked\"",
    "\"greeting\"",
    "\"chosen\"",
    "\"notChosen\"",
    "\"leaving\"",
    "\"yours\"",
    "\"version\"",
    "\"oldest\"",
    "\"listeners\"",
    "\"socket\"",
    "\"handover\"",
    "\"dev\"",
    "\"role\"",
    "\"heir\"",
    "\\ud800",
];

/// Every list of the fixtures, and our entry.
pub(crate) fn lists() -> Result<Vec<Vec<u8>>> {
    let mut seeds: Vec<Vec<u8>> =
        fixtures::all()?.iter().map(fixtures::Fixture::bytes).collect::<Result<_>>()?;
    seeds.push(ENTRY.as_bytes().to_vec());
    Ok(seeds)
}

/// Every recorded call of the plugin, and one of each command that was not recorded.
pub(crate) fn requests() -> Result<Vec<Vec<u8>>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cni-plugin/tests/fixtures/cni-calls");
    let mut seeds = Vec::new();
    let listed = std::fs::read_dir(&directory).with_context(|| format!("list {}", directory.display()))?;
    for entry in listed {
        let path = entry?.path();
        let text = std::fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let call: Value =
            serde_json::from_slice(&text).with_context(|| format!("parse {}", path.display()))?;
        let variable = |name: &str| {
            let value = call.get("env").and_then(|env| env.get(name)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let stdin = call.get("stdin").with_context(|| format!("{} has no stdin", path.display()))?;
        seeds.push(request(&VARIABLES.map(variable), stdin));
    }
    let gc = json!({
        "cniVersion": "1.1.0", "name": "cbr0", "type": "aether-cni", "addDeadlineSeconds": 2.5, "managed": "opt-in",
        "cni.dev/valid-attachments": [{"containerID": "a", "ifname": "eth0"}],
        "cni.dev/attachments": [{"containerID": "b", "ifname": "eth0"}],
    });
    seeds.push(request(&["GC", "", "", "", ""].map(str::to_owned), &gc));
    Ok(seeds)
}

fn request(variables: &[String; 5], stdin: &Value) -> Vec<u8> {
    format!("{}\n{stdin}", variables.join("\t")).into_bytes()
}

/// One of each of our files.
pub(crate) fn states() -> Result<Vec<Vec<u8>>> {
    let files = [
        json!({
            "format": 1, "oldestReader": 1, "container": "0123abcd", "interface": "eth0", "network": "cbr0",
            "started": {"bootId": "b", "boottimeNs": 12}, "requestId": "0123456789abcdef", "managed": "yes",
            "netns": {"path": "/run/netns/a", "inode": 4},
            "pod": {"namespace": "prod", "name": "web-0", "uid": "u", "annotations": {"aether.io/managed": "true"},
                "hostPorts": [{"hostPort": 80, "containerPort": 8080, "protocol": "tcp", "hostIp": ""}],
                "addresses": ["10.244.1.2/24"]},
            "policyLabels": {"team": "a"},
        }),
        json!({
            "format": 1, "oldestReader": 1, "container": "0123abcd", "interface": "eth0", "network": "cbr0",
            "started": {"bootId": "b", "boottimeNs": 12}, "requestId": "0123456789abcdef",
        }),
        json!({
            "format": 1, "oldestReader": 1, "entry": serde_json::from_str::<Value>(ENTRY)?,
            "pluginSha256": "00ff", "installId": "m/1", "firstInstalled": 1_700_000_000,
        }),
        json!({"format": 1, "oldestReader": 1, "installId": "m/1", "uninstalledAt": 1_700_000_000}),
        json!({
            "format": 1, "oldestReader": 1, "entry": serde_json::from_str::<Value>(ENTRY)?,
            "pluginSha256": "00ff", "installId": "m/1", "observedAt": 1_700_000_000,
        }),
        json!({
            "format": 1, "oldestReader": 1,
            "upstreams": [{"name": "a.b", "port": 80, "firstSeen": 1, "lastSeen": 2, "hits": 3}],
        }),
        json!({"format": 9, "oldestReader": 9, "shape": "unknown"}),
    ];
    Ok(files.iter().map(|file| file.to_string().into_bytes()).collect())
}

/// One of each message, behind the size of the pieces, and all of them in one stream.
pub(crate) fn messages() -> Result<Vec<Vec<u8>>> {
    let messages = [
        json!({"type": "hello", "version": 1, "oldest": 1, "name": "a", "started": 5, "role": "standby"}),
        json!({"type": "complete"}),
        json!({"type": "incomplete"}),
        json!({"type": "ready"}),
        json!({"type": "locked"}),
        json!({"type": "greeting", "version": 1, "name": "o", "listeners": [
            {"socket": "cni", "dev": 1, "ino": 2}, {"socket": "handover", "dev": 1, "ino": 3}]}),
        json!({"type": "chosen"}),
        json!({"type": "notChosen"}),
        json!({"type": "leaving"}),
        json!({"type": "yours"}),
        json!({"type": "fromTheFuture", "more": [1]}),
    ];
    let bytes: Vec<Vec<u8>> =
        messages.iter().map(|message| encoded(7, std::slice::from_ref(message))).collect::<Result<_>>()?;
    Ok([bytes, vec![encoded(3, &messages)?]].concat())
}

fn encoded(size: u8, messages: &[impl Serialize]) -> Result<Vec<u8>> {
    let mut bytes = vec![size];
    for message in messages {
        bytes.extend(encode(message)?);
    }
    Ok(bytes)
}

/// Answers alone, good and bad: the whole way to an owner, and away.
#[expect(clippy::unnecessary_wraps, reason = "seeds of other targets are read from files")]
pub(crate) fn events() -> Result<Vec<Vec<u8>>> {
    let head = [0, 0, 0, 1];
    let answers = |how: u8| [head.to_vec(), [4, 0, how].repeat(40)].concat();
    let mut seeds: Vec<Vec<u8>> = [0, 3, 4, 0x44].map(answers).into();
    // The lock is free, all goes well, SIGTERM, all goes well.
    let taken = [&head[..], &[4, 0, 3], &[4, 0, 0].repeat(20), &[0, 0], &[4, 0, 0].repeat(20)].concat();
    seeds.push(taken);
    Ok(seeds)
}
