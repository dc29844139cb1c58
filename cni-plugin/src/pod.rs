//! What CNI tells of a pod: its names from `CNI_ARGS`, its annotations and host ports from `runtimeConfig`, its
//! addresses from `prevResult`. All of it is read tolerantly: what has another shape is left out.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use aether_api::cni::{HostPort, Pod};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The capability under which the pod's annotations come.
pub const ANNOTATIONS: &str = "io.kubernetes.cri.pod-annotations";

/// The pod of one call.
pub fn read(args: &str, runtime: Option<&RawValue>, prev: Option<&RawValue>, interface: &str) -> Pod {
    let mut pod = Pod::default();
    for (key, value) in arguments(args) {
        match key {
            "K8S_POD_NAMESPACE" => value.clone_into(&mut pod.namespace),
            "K8S_POD_NAME" => value.clone_into(&mut pod.name),
            "K8S_POD_UID" => value.clone_into(&mut pod.uid),
            _ => {}
        }
    }
    let runtime: Keys<'_> = runtime.and_then(parse).unwrap_or_default();
    pod.annotations = annotations(&runtime);
    pod.host_ports = host_ports(&runtime);
    pod.addresses = prev.and_then(parse).map(|result| addresses(&result, interface)).unwrap_or_default();
    pod
}

/// The parts of `CNI_ARGS`: split at `;`, each at its first `=`; a part without one is ignored (K12).
pub fn arguments(args: &str) -> impl Iterator<Item = (&str, &str)> {
    args.split(';').filter_map(|part| part.split_once('='))
}

type Keys<'a> = BTreeMap<String, &'a RawValue>;

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn annotations(runtime: &Keys<'_>) -> HashMap<String, String> {
    let keys: Keys<'_> = runtime.get(ANNOTATIONS).and_then(|raw| parse(raw)).unwrap_or_default();
    keys.into_iter().filter_map(|(key, raw)| Some((key, parse(raw)?))).collect()
}

fn host_ports(runtime: &Keys<'_>) -> Vec<HostPort> {
    let list: Vec<&RawValue> = runtime.get("portMappings").and_then(|raw| parse(raw)).unwrap_or_default();
    list.into_iter().filter_map(|raw| host_port(&parse(raw)?)).collect()
}

/// containerd writes `HostPort`, podman `hostPort`, and Go's decoder takes either.
fn host_port(keys: &Keys<'_>) -> Option<HostPort> {
    let raw = |name: &str| keys.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, raw)| *raw);
    let port = |name: &str| raw(name).and_then(parse::<u16>).map(u32::from);
    let text = |name: &str| raw(name).and_then(parse::<String>).unwrap_or_default();
    let mut protocol = text("protocol").to_ascii_lowercase();
    if protocol.is_empty() {
        "tcp".clone_into(&mut protocol);
    }
    let host_port = port("hostPort").filter(|port| *port != 0)?;
    Some(HostPort { host_port, container_port: port("containerPort")?, protocol, host_ip: text("hostIP") })
}

/// The addresses of `interface`: `ips` since 0.3.0, `ip4` and `ip6` before. One that names another interface by its
/// index is left out.
fn addresses(result: &Keys<'_>, interface: &str) -> Vec<String> {
    let interfaces: Vec<&RawValue> = result.get("interfaces").and_then(|raw| parse(raw)).unwrap_or_default();
    let name = |index: usize| -> Option<String> {
        let keys: Keys<'_> = parse(interfaces.get(index)?)?;
        parse(keys.get("name")?)
    };
    let mut found = Vec::new();
    let ips: Vec<&RawValue> = result.get("ips").and_then(|raw| parse(raw)).unwrap_or_default();
    for keys in ips.into_iter().filter_map(parse::<Keys<'_>>) {
        let index: Option<usize> = keys.get("interface").and_then(|raw| parse(raw));
        let elsewhere = index.and_then(name).is_some_and(|name| name != interface);
        if !elsewhere {
            found.extend(keys.get("address").and_then(|raw| address(raw)));
        }
    }
    for family in ["ip4", "ip6"] {
        let keys: Option<Keys<'_>> = result.get(family).and_then(|raw| parse(raw));
        found.extend(keys.and_then(|keys| address(keys.get("ip")?)));
    }
    found
}

fn address(raw: &RawValue) -> Option<String> {
    let text: String = parse(raw)?;
    let (ip, _) = text.split_once('/').unwrap_or((&text, ""));
    ip.parse::<IpAddr>().is_ok().then_some(text)
}

#[cfg(test)]
mod tests;
