//! What goes over the wire: records as they came, answers, and errors as status codes.

use aether_api::cni;
use aether_cni_server::Command;
use aether_domain::managed::Managed;
use aether_domain::pods::{AddError, NotServing};
use aether_domain::record::{HostPort, Netns, Pod};
use tonic::Code;

use crate::support::{Running, Scripted, add_request, attachment, caller, del_request};

#[tokio::test]
async fn k03_an_adds_pod_reaches_the_service_whole() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut request = add_request("Ab.C", "web", 10);
    request.managed = cni::Managed::OptedOut.into();
    request.pod = Some(cni::Pod {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
        annotations: [("k".to_owned(), "v".to_owned())].into(),
        host_ports: vec![cni::HostPort {
            host_port: 80,
            container_port: 8080,
            protocol: "tcp".to_owned(),
            host_ip: "::".to_owned(),
        }],
        addresses: vec!["10.0.0.1/24".to_owned(), "fd00::1/64".to_owned()],
    });
    running.client().await.add(request).await.unwrap();
    let added = service.added.lock().unwrap();
    let record = &added[0];
    assert_eq!(record.key.to_string(), "Ab.C/eth0");
    assert_eq!((record.network.as_str(), record.request_id.as_str()), ("net", "req-10"));
    assert_eq!((record.started.nanos, record.managed), (10, Managed::OptedOut));
    assert_eq!(record.netns, Netns { path: "/run/netns/x".to_owned(), inode: 7 });
    let host_port = HostPort {
        host_port: 80,
        container_port: 8080,
        protocol: "tcp".to_owned(),
        host_ip: "::".to_owned(),
    };
    let pod = Pod {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: "u-1".to_owned(),
        annotations: [("k".to_owned(), "v".to_owned())].into(),
        host_ports: vec![host_port],
        addresses: vec!["10.0.0.1/24".to_owned(), "fd00::1/64".to_owned()],
    };
    assert_eq!(record.pod, pod);
}

#[tokio::test]
async fn k15_what_a_newer_plugin_says_of_managed_counts_as_managed() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    for (container, managed) in [("a", 99), ("b", 0)] {
        client.add(cni::AddRequest { managed, ..add_request(container, "", 10) }).await.unwrap();
    }
    assert!(service.added.lock().unwrap().iter().all(|record| record.managed == Managed::Yes));
}

#[tokio::test]
async fn k05_k07_k09_k11_answers_say_what_was_found() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    client.add(add_request("a", "web", 10)).await.unwrap();
    client.add(add_request("a", "web", 10)).await.unwrap();
    let check = |container: &str, created| cni::CheckRequest {
        caller: Some(caller(1)),
        attachment: Some(attachment(container)),
        network: "net".to_owned(),
        netns: Some(cni::Netns { created, ..cni::Netns::default() }),
    };
    for (container, created, known) in [
        ("a", 0, cni::Known::Managed),
        ("x", 999, cni::Known::BeforeInstall),
        ("x", 1_000, cni::Known::Missing),
        ("x", 0, cni::Known::Missing),
    ] {
        assert_eq!(client.check(check(container, created)).await.unwrap().into_inner().known(), known);
    }
    assert!(!client.del(del_request("a", 9)).await.unwrap().into_inner().existed, "a later ADD is spared");
    assert!(client.del(del_request("a", 11)).await.unwrap().into_inner().existed);
    assert!(!client.del(del_request("a", 11)).await.unwrap().into_inner().existed);
    let late = client.add(add_request("a", "web", 10)).await.unwrap_err();
    assert_eq!(late.code(), Code::FailedPrecondition, "{late}");
    for container in ["g1", "g2", "g3"] {
        client.add(add_request(container, "", 20)).await.unwrap();
    }
    // An id that is none spares nothing and harms nothing.
    let valid = vec![attachment("g1"), attachment("../x")];
    let gc = cni::GcRequest { caller: Some(caller(30)), network: "net".to_owned(), valid };
    assert_eq!(client.gc(gc).await.unwrap().into_inner().removed, 2);
    assert_eq!(service.containers(), ["g1"]);
    let status = client.status(cni::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.agent_version, "9.9.9");
}

#[tokio::test]
async fn k16_errors_reach_the_plugin_as_codes_with_their_causes() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    let key = || aether_domain::key::Key::new("a".parse().unwrap(), "eth0".parse().unwrap());
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    for (error, code, text) in [
        (AddError::NotServing(NotServing), Code::Unavailable, "standby"),
        (AddError::CallerGone { key: key() }, Code::Cancelled, "gone"),
        (AddError::Storage { key: key(), source: full().into() }, Code::Internal, "no storage space"),
        (AddError::TooLarge { key: key(), bytes: 9, max: 8 }, Code::InvalidArgument, "annotations"),
    ] {
        *service.fails.lock().unwrap() = Some(error);
        let status = client.add(add_request("a", "web", 10)).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(text), "{status}");
    }
    *service.fails.lock().unwrap() = Some(AddError::CallerGone { key: key() });
    let status = client.status(cni::StatusRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal, "{status}");
    let other_boot = cni::Caller { boot_id: "another".to_owned(), ..caller(10) };
    let request = cni::AddRequest { caller: Some(other_boot), ..add_request("a", "web", 10) };
    assert_eq!(client.add(request).await.unwrap_err().code(), Code::InvalidArgument);
    let answered = running.counted.answered.lock().unwrap();
    let codes: Vec<&str> = answered.iter().map(|call| call.code).collect();
    assert_eq!(
        codes,
        ["UNAVAILABLE", "CANCELLED", "INTERNAL", "INVALID_ARGUMENT", "INTERNAL", "INVALID_ARGUMENT"]
    );
    assert_eq!(answered[0].command, Command::Add);
    assert_eq!(answered[4].command, Command::Status);
}
