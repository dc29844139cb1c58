//! CHECK, GC and STATUS (K09, K10, K11, K15).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use aether_api::cni::Known;
use common::agent::{Agent, Asked, Mood};
use common::raw::{GOAWAY, Raw, SETTINGS};
use common::{ID, Place, Plugin, Stdin, eventually};
use serde_json::{Value, json};
use tonic::Code;

/// A CHECK of the loopback interface in the test's own namespace, which is there.
fn check(place: &Place) -> Plugin {
    place.call("CHECK").env("CNI_NETNS", "/proc/self/ns/net").env("CNI_IFNAME", "lo")
}

fn gc(place: &Place, keys: &Value) -> Plugin {
    let plugin = Plugin::new("GC").stdin(place.config(keys).to_string());
    // libcni sets none of them for a GC.
    ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"].into_iter().fold(plugin, Plugin::without)
}

fn status(place: &Place) -> Plugin {
    let plugin = Plugin::new("STATUS").stdin(place.config(&json!({"cniVersion": "1.1.0"})).to_string());
    // containerd sets them all, empty.
    ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"]
        .into_iter()
        .fold(plugin, |it, name| it.env(name, ""))
}

#[test]
fn k09_a_recorded_pod_with_its_interface_is_as_it_should_be() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    check(&place).run().silent();
    let asked = agent.asked();
    let [Asked::Check(request)] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(request.attachment.clone().unwrap().container_id, ID);
    let netns = request.netns.clone().unwrap();
    assert_eq!(netns.inode, std::fs::metadata("/proc/self/ns/net").unwrap().ino());
    assert!(netns.created > 0);
}

#[test]
fn k09_a_namespace_or_interface_that_is_gone_fails_without_asking() {
    let place = Place::new();
    let file = place.dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let error = check(&place).env("CNI_IFNAME", "eth-gone").run().error(102);
    assert!(error["details"].as_str().unwrap().contains("eth-gone"), "{error}");
    for netns in ["/run/netns/no-such", "/no/such/parent", file.to_str().unwrap()] {
        let error = check(&place).env("CNI_NETNS", netns).run().error(102);
        assert!(error["details"].as_str().unwrap().contains(netns), "{error}");
    }
    assert_eq!(agent.asked(), []);
}

#[test]
fn k09_what_the_agent_knows_decides() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    for known in [Known::Managed, Known::Unmanaged, Known::BeforeInstall] {
        agent.be(Mood::Knowing(known));
        check(&place).run().silent();
    }
    for known in [Known::Missing, Known::Unspecified] {
        agent.be(Mood::Knowing(known));
        check(&place).run().error(102);
    }
}

#[test]
fn k09_without_an_agent_a_check_is_code_11() {
    let place = Place::new();
    check(&place).run().error(11);
    let agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unavailable));
    check(&place).run().error(11);
    assert_eq!(agent.asked().len(), 1);
    agent.be(Mood::Silent);
    let ended = check(&place).run();
    ended.error(11);
    assert!(ended.took < Duration::from_secs(50), "{:?}", ended.took);
}

#[test]
fn k09_a_pod_of_an_ignored_namespace_succeeds_without_an_agent() {
    let place = Place::new();
    check(&place).env("CNI_ARGS", "K8S_POD_NAMESPACE=kube-system").run().silent();
}

#[test]
fn k09_k04_an_agent_that_goes_in_the_middle_is_asked_again() {
    for (command, plugin) in [("CHECK", check as fn(&Place) -> Plugin), ("STATUS", status)] {
        let place = Place::new();
        let raw = Raw::start(&place.socket(), [SETTINGS, GOAWAY].concat());
        let running = plugin(&place).start();
        eventually(command, || raw.connections() >= 1);
        let _agent = Agent::start(&place.socket(), Mood::Serving);
        running.wait().silent();
    }
}

#[test]
fn k10_a_status_says_whether_an_add_could_be_served() {
    let place = Place::new();
    let error = status(&place).run().error(50);
    assert!(error["details"].as_str().unwrap().contains(place.socket().to_str().unwrap()), "{error}");
    let agent = Agent::start(&place.socket(), Mood::Serving);
    status(&place).run().silent();
    for code in [Code::Unavailable, Code::ResourceExhausted, Code::Internal] {
        agent.be(Mood::Refusing(code));
        status(&place).run().error(50);
    }
    assert!(!place.state().exists(), "nothing was written");
}

/// bugs.md H7, and containerd 2, which never kills one that hangs.
#[test]
fn k10_h7_a_status_ends_by_itself_whatever_agent_and_caller_do() {
    let place = Place::new();
    let mut ended = Vec::new();
    let agent = Agent::start(&place.socket(), Mood::Silent);
    ended.push(status(&place).run());
    drop(agent);
    std::fs::remove_file(place.socket()).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(place.socket()).unwrap();
    ended.push(status(&place).run());
    drop(listener);
    std::fs::remove_file(place.socket()).unwrap();
    let _raw = Raw::start(&place.socket(), [SETTINGS, GOAWAY].concat());
    ended.push(status(&place).run());
    for ended in ended {
        ended.error(50);
        assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    }
    let ended = status(&place).stdin_of(Stdin::Open(Vec::new())).run();
    ended.error(6);
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
}

/// bugs.md G14.
#[test]
fn k11_g14_a_gc_names_what_is_spared() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let list = json!([{"containerID": "a", "ifname": "eth0"}]);
    gc(&place, &json!({})).run().silent();
    gc(&place, &json!({"cni.dev/valid-attachments": null})).run().silent();
    assert_eq!(agent.asked(), [], "with no list nothing is deleted");
    gc(&place, &json!({"cni.dev/valid-attachments": []})).run().silent();
    gc(&place, &json!({"cni.dev/attachments": list})).run().silent();
    gc(&place, &json!({"cni.dev/valid-attachments": list})).run().silent();
    gc(&place, &json!({"cni.dev/valid-attachments": list, "cni.dev/attachments": list})).run().silent();
    let spared: Vec<usize> = agent
        .asked()
        .into_iter()
        .map(|asked| match asked {
            Asked::Gc(request) => {
                assert_eq!(request.network, "cbr0");
                assert!(request.caller.unwrap().boottime_ns > 0, "ADDs after it must be told");
                request.valid.len()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(spared, [0, 1, 1, 1]);
    gc(&place, &json!({"cni.dev/attachments": [{"containerID": 7}]})).run().error(7);
    assert_eq!(agent.asked().len(), 4);
}

#[test]
fn k11_without_an_agent_a_gc_succeeds() {
    let place = Place::new();
    gc(&place, &json!({"cni.dev/attachments": []})).run().silent();
    let agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unavailable));
    gc(&place, &json!({"cni.dev/attachments": []})).run().silent();
    agent.be(Mood::Refusing(Code::Internal));
    gc(&place, &json!({"cni.dev/attachments": []})).run().error(100);
}

/// bugs.md I7: an older agent.
#[test]
fn k15_an_agent_that_does_not_know_a_call_is_no_error() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unimplemented));
    check(&place).run().silent();
    check(&place).env("CNI_IFNAME", "eth-gone").run().error(102);
    gc(&place, &json!({"cni.dev/attachments": []})).run().silent();
    status(&place).run().silent();
}
