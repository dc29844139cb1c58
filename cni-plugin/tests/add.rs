//! ADD against agents that behave and agents that do not (K03, K04, K06, K16).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use aether_api::cni::{Attachment, HostPort, Managed, Pod};
use common::agent::{Agent, Asked, Mood};
use common::raw::{EMPTY_ANSWER, GOAWAY, HEADERS, RESET, Raw, SETTINGS};
use common::{ID, Place, eventually};
use serde_json::json;
use tonic::Code;

/// `bytes` after the server's SETTINGS.
fn after_settings(bytes: &[u8]) -> Vec<u8> {
    [SETTINGS, bytes].concat()
}

#[test]
fn k03_the_pod_reaches_the_agent_and_the_result_leaves_as_it_came() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let prev = r#"{ "ips":[{"interface":1,"address":"10.244.1.2/24"}], "interfaces":[{"name":"cni0"},{"name":"eth0"}],
        "cniVersion":"0.3.1","unknown":{"n":12345678901234567890,"f":1.50,"s":"\u003c","é":null},"dns":{} }"#;
    let config = place
        .config(&json!({"runtimeConfig": {
            "io.kubernetes.cri.pod-annotations": {"a": "b"},
            "portMappings": [{"HostPort": 30080, "ContainerPort": 8080, "Protocol": "tcp", "HostIP": ""}],
        }}))
        .to_string();
    let stdin = format!(r#"{{"prevResult":{prev},{}"#, config.strip_prefix('{').unwrap());
    let ended = common::Plugin::new("ADD").env("CNI_NETNS", "/proc/self/ns/net").stdin(stdin).run();
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), prev);
    let request = agent.added();
    assert_eq!(request.attachment, Some(Attachment { container_id: ID.into(), interface: "eth0".into() }));
    assert_eq!((request.network.as_str(), request.managed()), ("cbr0", Managed::Yes));
    let pod = Pod {
        namespace: "prod".into(),
        name: "web-0".into(),
        uid: "u-1".into(),
        annotations: HashMap::from([("a".into(), "b".into())]),
        host_ports: vec![HostPort {
            host_port: 30080,
            container_port: 8080,
            protocol: "tcp".into(),
            host_ip: String::new(),
        }],
        addresses: vec!["10.244.1.2/24".into()],
    };
    assert_eq!(request.pod, Some(pod));
    let netns = request.netns.unwrap();
    assert_eq!(netns.path, "/proc/self/ns/net");
    assert_eq!(netns.inode, std::fs::metadata("/proc/self/ns/net").unwrap().ino());
    assert!(netns.created > 1_600_000_000, "{netns:?}");
}

#[test]
fn k07_an_add_carries_the_moment_its_process_began() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let before = aether_durable::boot::now().unwrap();
    place.add(&json!({})).run().document();
    let after = aether_durable::boot::now().unwrap();
    let caller = agent.added().caller.unwrap();
    assert_eq!(caller.boot_id, before.boot.as_str());
    assert!(before.nanos < caller.boottime_ns && caller.boottime_ns < after.nanos, "{caller:?}");
    assert_eq!(caller.plugin_version, env!("CARGO_PKG_VERSION"));
}

/// bugs.md B4.
#[test]
fn k01_a_result_of_the_oldest_shape_is_served() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let prev = json!({"cniVersion": "0.1.0", "ip4": {"ip": "10.1.0.3/24", "gateway": "10.1.0.1"}, "dns": {}});
    let mut config = place.config(&json!({"prevResult": prev}));
    config.as_object_mut().unwrap().remove("cniVersion");
    assert_eq!(common::Plugin::new("ADD").stdin(config.to_string()).run().document(), prev);
    assert_eq!(agent.added().pod.unwrap().addresses, ["10.1.0.3/24"]);
}

/// A result and a request above the window and the frames of HTTP/2.
#[test]
fn k03_a_large_pod_passes() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let value = "v".repeat(1024 * 1024);
    let prev = json!({"cniVersion": "0.3.1", "x": "y".repeat(1024 * 1024)});
    let runtime = json!({"io.kubernetes.cri.pod-annotations": {"big": value}});
    assert_eq!(place.add(&json!({"prevResult": prev, "runtimeConfig": runtime})).run().document(), prev);
    assert_eq!(agent.added().pod.unwrap().annotations["big"], value);
}

/// bugs.md H1: never up.
#[test]
fn k04_without_an_agent_an_add_fails_with_code_11_at_its_deadline() {
    let place = Place::new();
    let ended = place.add(&json!({"addDeadlineSeconds": 0.5})).run();
    let error = ended.error(11);
    let details = error["details"].as_str().unwrap();
    assert!(details.contains(place.socket().to_str().unwrap()), "{details}");
    assert!(details.contains("0.5 s") && details.contains("No such file"), "{details}");
    assert!(
        ended.took >= Duration::from_millis(400) && ended.took < Duration::from_secs(5),
        "{:?}",
        ended.took
    );
}

#[test]
fn k04_the_default_deadline_is_five_seconds() {
    let place = Place::new();
    let ended = place.add(&json!({})).run();
    ended.error(11);
    assert!(
        ended.took >= Duration::from_millis(4500) && ended.took < Duration::from_secs(50),
        "{:?}",
        ended.took
    );
}

/// bugs.md H1: up two seconds later.
#[test]
fn k04_h1_an_agent_that_comes_two_seconds_later_is_found() {
    let place = Place::new();
    let running = place.add(&json!({})).start();
    // pause: the agent is away for as long, which is what is tested
    std::thread::sleep(Duration::from_secs(2));
    let agent = Agent::start(&place.socket(), Mood::Serving);
    running.wait().document();
    agent.added();
}

/// bugs.md H3.
#[test]
fn k04_h3_an_agent_that_never_answers_is_given_up_at_the_deadline() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Silent);
    let ended = place.add(&json!({"addDeadlineSeconds": 0.5})).run();
    let error = ended.error(11);
    assert!(error["details"].as_str().unwrap().contains("no answer in time"), "{error}");
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
    agent.added();
}

#[test]
fn k04_a_listener_that_accepts_and_says_nothing_is_given_up_at_the_deadline() {
    let place = Place::new();
    // Nobody accepts: the connections lie in the queue.
    let _listener = std::os::unix::net::UnixListener::bind(place.socket()).unwrap();
    let ended = place.add(&json!({"addDeadlineSeconds": 0.5})).run();
    ended.error(11);
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

#[test]
fn k04_a_full_queue_is_waited_for() {
    use rustix::net;
    let place = Place::new();
    let listener = net::socket(net::AddressFamily::UNIX, net::SocketType::STREAM, None).unwrap();
    net::bind(&listener, &net::SocketAddrUnix::new(place.socket()).unwrap()).unwrap();
    net::listen(&listener, 0).unwrap();
    let _queued = std::os::unix::net::UnixStream::connect(place.socket()).unwrap();
    let running = place.add(&json!({})).start();
    // pause: the listener is deaf for as long, which is what is tested
    std::thread::sleep(Duration::from_millis(300));
    let agent = Agent::start(&place.socket(), Mood::Serving);
    running.wait().document();
    agent.added();
}

#[test]
fn k04_a_late_answer_is_an_answer() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Slow(Duration::from_secs(1)));
    place.add(&json!({})).run().document();
}

#[test]
fn k04_an_agent_that_does_not_serve_yet_is_asked_again() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unavailable));
    let running = place.add(&json!({})).start();
    eventually("a second attempt", || agent.asked().len() >= 2);
    agent.be(Mood::Serving);
    running.wait().document();
    let requests = agent.asked();
    assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
}

/// Reset, GOAWAY, end of stream, at each place of an answer: the call is made again, on whatever then listens.
#[test]
fn k04_an_agent_that_goes_in_the_middle_is_asked_again() {
    for (what, answer) in [
        ("closed at once", Vec::new()),
        ("closed after the settings", SETTINGS.to_vec()),
        ("GOAWAY", after_settings(GOAWAY)),
        ("stream reset", after_settings(RESET)),
        ("closed after the headers", after_settings(HEADERS)),
        ("an answer without a status", after_settings(EMPTY_ANSWER)),
        ("no HTTP/2 at all", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        let place = Place::new();
        let raw = Raw::start(&place.socket(), answer);
        let running = place.add(&json!({})).start();
        eventually(what, || raw.connections() >= 2);
        let agent = Agent::start(&place.socket(), Mood::Serving);
        running.wait().document();
        agent.added();
    }
}

#[test]
fn k04_the_last_trouble_is_told() {
    let place = Place::new();
    let _raw = Raw::start(&place.socket(), after_settings(GOAWAY));
    let error = place.add(&json!({"addDeadlineSeconds": 0.3})).run().error(11);
    assert!(error["details"].as_str().unwrap().contains("ended without an answer"), "{error}");
}

/// The old owner is asked, hands over, and its connections end; the new one answers.
#[test]
fn k04_an_answer_of_the_next_owner_counts() {
    let place = Place::new();
    let old = Agent::start(&place.socket(), Mood::Silent);
    let running = place.add(&json!({})).start();
    eventually("the old owner was asked", || !old.asked().is_empty());
    let new = Agent::start(&place.socket(), Mood::Serving);
    drop(old);
    running.wait().document();
    new.added();
}

#[test]
fn k16_each_refusal_has_its_code_and_is_not_repeated() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    for (status, code) in [
        (Code::ResourceExhausted, 11),
        (Code::InvalidArgument, 7),
        (Code::PermissionDenied, 101),
        (Code::FailedPrecondition, 100),
        (Code::Internal, 100),
        (Code::Unimplemented, 100),
    ] {
        agent.be(Mood::Refusing(status));
        let before = agent.asked().len();
        let error = place.add(&json!({})).run().error(code);
        assert!(error["details"].as_str().unwrap().contains("the test says so"), "{error}");
        assert_eq!(agent.asked().len(), before + 1, "{status:?}");
    }
}

#[test]
fn k04_a_socket_path_that_is_none_is_waited_for_and_named() {
    let place = Place::new();
    let at = |name: &str| place.dir.path().join(name);
    std::fs::create_dir(at("directory")).unwrap();
    std::fs::write(at("file"), b"").unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    for name in ["directory", "file", "dangling", "missing/parent", "file/below"] {
        let error = place.add(&json!({"agentSocket": at(name), "addDeadlineSeconds": 0.1})).run().error(11);
        assert!(error["details"].as_str().unwrap().contains(at(name).to_str().unwrap()), "{error}");
    }
}

#[test]
fn k04_a_link_to_the_socket_is_followed() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    let link = place.dir.path().join("link");
    std::os::unix::fs::symlink(place.socket(), &link).unwrap();
    place.add(&json!({"agentSocket": link})).run().document();
}

/// Who is not root cannot admit a pod, nor be told of one.
#[test]
fn k04_o04_a_socket_of_another_user_is_not_spoken_to() {
    let place = Place::new();
    let directory = place.dir.path().join("theirs");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(place.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&directory, Some(65534), Some(65534)).unwrap();
    let socket = directory.join("cni.sock");
    let bind = socket.clone();
    // A thread of its own gives up root for itself alone, and listens.
    let listener = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        std::os::unix::net::UnixListener::bind(bind).unwrap()
    })
    .join()
    .unwrap();
    let error = place.add(&json!({"agentSocket": socket, "addDeadlineSeconds": 0.2})).run().error(11);
    assert!(error["details"].as_str().unwrap().contains("served by uid 65534"), "{error}");
    listener.set_nonblocking(true).unwrap();
    while let Ok((mut stream, _)) = listener.accept() {
        let mut bytes = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut bytes);
        assert_eq!(bytes, b"", "something was sent to it");
    }
}

/// bugs.md H6: the agent's own pod can not wait for itself.
#[test]
fn k06_h6_ignored_namespaces_pass_without_an_agent() {
    let place = Place::new();
    let entry = json!({"releaseNamespace": "aether", "ignoredNamespaces": ["quiet"]});
    for namespace in ["kube-system", "aether", "quiet"] {
        let args = format!("IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME=x");
        let ended = place.add(&entry).env("CNI_ARGS", args).run();
        assert_eq!(ended.document(), json!({"cniVersion": "0.3.1", "dns": {}}));
        assert_eq!(ended.logged("outcome"), "ignored-namespace");
        assert!(ended.took < Duration::from_secs(5));
    }
    assert!(!place.state().exists(), "nothing was written");
}

#[test]
fn k06_an_opted_out_pod_is_sent_all_the_same() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let annotations = json!({"io.kubernetes.cri.pod-annotations": {"aether.io/managed": "false"}});
    place.add(&json!({"runtimeConfig": annotations})).run().document();
    assert_eq!(agent.added().managed(), Managed::OptedOut);
    agent.be(Mood::Refusing(Code::PermissionDenied));
    place.add(&json!({"runtimeConfig": annotations})).run().error(101);
}

/// bugs.md G9: what an uninstall leaves is a harmless link of the chain.
#[test]
fn k06_g9_once_uninstalled_everything_passes_and_nothing_is_written() {
    let place = Place::new();
    place.uninstall();
    let ended = place.add(&json!({})).run();
    assert_eq!(ended.document(), json!({"cniVersion": "0.3.1", "dns": {}}));
    assert_eq!(ended.logged("outcome"), "uninstalled");
    place.record(ID);
    for command in ["DEL", "CHECK", "GC", "STATUS"] {
        place.call(command).run().silent();
    }
    assert!(place.tombstones().is_empty());
    assert!(!place.deletes().exists());
    place.add(&json!({"prevResult": null})).run().error(7);
}

#[test]
fn k06_an_add_that_waits_while_we_are_uninstalled_passes() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unavailable));
    let running = place.add(&json!({"addDeadlineSeconds": 1})).start();
    eventually("it waits", || !agent.asked().is_empty());
    place.uninstall();
    assert_eq!(running.wait().logged("outcome"), "uninstalled");
}

/// bugs.md H4: the runtime kills a plugin that is too slow. The agent sees its caller go (K16), the next DEL cleans up.
#[test]
fn k16_h4_an_add_that_its_caller_cancels_is_seen_to_be_gone() {
    for signal in [rustix::process::Signal::KILL, rustix::process::Signal::TERM] {
        let place = Place::new();
        let agent = Agent::start(&place.socket(), Mood::Silent);
        let running = place.add(&json!({})).start();
        eventually("it was asked", || !agent.asked().is_empty());
        rustix::process::kill_process(rustix::process::Pid::from_child(&running.child), signal).unwrap();
        let ended = running.wait();
        assert_eq!(ended.status.signal(), Some(signal.as_raw()), "{ended:?}");
        assert_eq!(ended.stdout, b"");
        eventually("its connection is gone", || agent.connections() == 0);
        agent.be(Mood::Serving);
        place.del().run().silent();
        assert!(matches!(agent.asked().last(), Some(Asked::Del(_))));
        assert!(place.tombstones().is_empty());
    }
}

/// bugs.md H10: many at once.
#[test]
fn k16_a_hundred_at_once_are_each_answered() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Slow(Duration::from_millis(50)));
    let running: Vec<_> = (0..100)
        .map(|n| {
            place.add(&json!({"addDeadlineSeconds": 30})).env("CNI_CONTAINERID", format!("c{n}")).start()
        })
        .collect();
    for running in running {
        running.wait().document();
    }
    let mut ids: Vec<String> = agent
        .asked()
        .into_iter()
        .map(|asked| match asked {
            Asked::Add(request) => request.attachment.unwrap().container_id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}

/// podman names no namespace and no uid.
#[test]
fn k06_a_pod_of_a_caller_that_is_no_kubelet_is_managed() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    place.add(&json!({})).env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=e1").run().document();
    let request = agent.added();
    assert_eq!(request.managed(), Managed::Yes);
    let pod = request.pod.unwrap();
    assert_eq!((pod.namespace.as_str(), pod.name.as_str()), ("", "e1"));
}
