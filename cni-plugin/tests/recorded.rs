//! Every recorded call of containerd 1.6 and podman 4.3 is served (fixtures/cni-calls).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use common::agent::{Agent, Asked, Mood};
use common::{Place, Plugin, read_json};
use serde_json::Value;

#[test]
fn k03_k07_every_recorded_call_is_answered_as_its_runtime_expects() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cni-calls");
    let mut calls: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    calls.sort();
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let mut adds = 0;
    for path in &calls {
        let call = read_json(path);
        let mut stdin = call["stdin"].clone();
        let before = agent.asked().len();
        let command = call["env"]["CNI_COMMAND"].as_str().unwrap();
        if command != "VERSION" {
            stdin["agentSocket"] = place.socket().to_str().into();
            stdin["stateDir"] = place.state().to_str().into();
        }
        let plugin = Plugin::by_hand().stdin(stdin.to_string());
        let plugin = call["env"]
            .as_object()
            .unwrap()
            .iter()
            .fold(plugin, |it, (name, value)| it.env(name, value.as_str().unwrap()));
        let ended = plugin.run();
        match command {
            "ADD" => {
                assert_eq!(ended.document(), call["stdout"], "{path:?}");
                // As Go sends it: without white space, in its order.
                let prev = serde_json::to_string(&stdin["prevResult"]).unwrap();
                assert_eq!(String::from_utf8(ended.stdout.clone()).unwrap(), prev, "{path:?}");
                let Some(Asked::Add(request)) = agent.asked().pop() else { panic!("{path:?}") };
                let pod = request.pod.unwrap();
                assert!(pod.addresses.iter().all(|address| address.starts_with("10.244.1.")), "{pod:?}");
                assert_eq!((pod.addresses.len(), pod.name.is_empty()), (1, false), "{path:?}: {pod:?}");
                let capable = stdin.get("runtimeConfig").is_some();
                assert_eq!(
                    (pod.annotations.len(), pod.host_ports.len()),
                    (capable.into(), capable.into()),
                    "{path:?}"
                );
                adds += 1;
            }
            "DEL" => {
                ended.silent();
                assert!(matches!(agent.asked().pop(), Some(Asked::Del(_))), "{path:?}");
            }
            "VERSION" => {
                let reply = ended.document();
                assert_eq!(reply["cniVersion"], call["stdout"]["cniVersion"]);
                let versions = reply["supportedVersions"].as_array().unwrap();
                let expected: &[Value] = call["stdout"]["supportedVersions"].as_array().unwrap();
                assert!(expected.iter().all(|version| versions.contains(version)), "{path:?}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(agent.asked().len(), before + usize::from(command != "VERSION"));
    }
    assert!(adds >= 10 && calls.len() >= 45, "{} calls, {adds} ADDs", calls.len());
    assert!(!place.state().exists(), "nothing was written");
}
