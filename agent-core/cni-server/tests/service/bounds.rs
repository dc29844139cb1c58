//! Bounded inputs, bounded numbers, and who may call at all (O04, K16).

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use aether_api::cni;
use aether_domain::limits::{ADDS_MAX, CALL_BYTES_MAX, CALL_LIST_MAX, CALL_TEXT_MAX};
use tokio::task::JoinSet;
use tonic::Code;

use crate::support::{PATIENCE, Running, Scripted, add_request, attachment, del_request, until};

#[tokio::test(flavor = "multi_thread")]
async fn k16_of_more_adds_than_may_be_in_flight_the_rest_is_refused_at_once() {
    const MORE: usize = 20;
    let service = Scripted::closed();
    let running = Running::start(&service);
    let mut calls = JoinSet::new();
    for n in 0..ADDS_MAX {
        // A few connections with many calls each; the plugin has one each, which costs two descriptors here.
        let mut client = if n % 128 == 0 { Some(running.client().await) } else { None };
        if let Some(client) = client.take() {
            for m in n..(n + 128).min(ADDS_MAX) {
                let mut client = client.clone();
                calls.spawn(async move { client.add(add_request(&format!("c{m}"), "", 10)).await.map(drop) });
            }
        }
    }
    until("all that may be are in flight", || running.handle.adds_in_flight() == ADDS_MAX).await;
    let mut client = running.client().await;
    for n in 0..MORE {
        let began = Instant::now();
        let refused = client.add(add_request(&format!("x{n}"), "", 10)).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("512") && refused.message().contains("again"), "{refused}");
        assert!(began.elapsed() < Duration::from_secs(5), "not at once");
    }
    // The others are not hindered by it: a STATUS is answered, a DEL is taken.
    client.status(cni::StatusRequest::default()).await.unwrap();
    service.gate.add_permits(ADDS_MAX);
    while let Some(ended) = calls.join_next().await {
        ended.unwrap().unwrap();
    }
    assert_eq!(service.containers().len(), ADDS_MAX);
    assert_eq!(running.handle.adds_in_flight(), 0);
    service.gate.add_permits(1);
    client.add(add_request("y", "", 10)).await.unwrap();
    let answered = running.counted.answered.lock().unwrap();
    assert_eq!(answered.iter().filter(|call| call.code == "RESOURCE_EXHAUSTED").count(), MORE);
    assert_eq!(answered.iter().filter(|call| call.code == "OK").count(), ADDS_MAX + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn o04_a_peer_that_is_not_root_is_refused_even_where_the_mode_lets_it_in() {
    let service = Scripted::open();
    let running = Running::start(&service);
    std::fs::set_permissions(&running.path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let directory = running.path.parent().unwrap();
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o711)).unwrap();
    let path = running.path.clone();
    // On a thread of its own: the system call changes the calling thread's ids alone.
    let read = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("run the tests as root");
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = Vec::new();
        // A reset says the same as an end.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    });
    let bytes = tokio::task::spawn_blocking(move || read.join().unwrap()).await.unwrap();
    assert_eq!(bytes, b"", "it was closed without a word");
    until("the refusal is counted", || *running.counted.refused.lock().unwrap() == 1).await;
    running.client().await.status(cni::StatusRequest::default()).await.unwrap();
}

#[tokio::test]
async fn o04_what_is_too_long_too_many_or_no_id_is_refused_by_name() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    let good = add_request("a", "web", 10);
    let with_pod = |change: fn(&mut cni::Pod)| {
        let mut request = good.clone();
        change(request.pod.as_mut().unwrap());
        request
    };
    let many = |n: usize| (0..n).map(|n| n.to_string());
    let mut annotations = good.clone();
    annotations.pod.as_mut().unwrap().annotations =
        many(CALL_LIST_MAX + 1).map(|n| (n, String::new())).collect();
    let mut addresses = good.clone();
    addresses.pod.as_mut().unwrap().addresses = many(CALL_LIST_MAX + 1).collect();
    let netns = cni::Netns { path: "x".repeat(CALL_TEXT_MAX + 1), ..cni::Netns::default() };
    for (request, named) in [
        (cni::AddRequest { caller: None, ..good.clone() }, "caller"),
        (cni::AddRequest { attachment: None, ..good.clone() }, "attachment"),
        (cni::AddRequest { attachment: Some(attachment("../etc")), ..good.clone() }, "container id"),
        (cni::AddRequest { attachment: Some(attachment("")), ..good.clone() }, "container id"),
        (cni::AddRequest { network: "n".repeat(5_000), ..good.clone() }, "network name"),
        (cni::AddRequest { netns: Some(netns), ..good.clone() }, "namespace's path"),
        (with_pod(|pod| pod.name = "n".repeat(CALL_TEXT_MAX + 1)), "pod's name"),
        (with_pod(|pod| pod.host_ports = vec![cni::HostPort::default(); CALL_LIST_MAX + 1]), "host ports"),
        (annotations, "annotations"),
        (addresses, "addresses"),
    ] {
        let refused = client.add(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{named}: {refused}");
        assert!(refused.message().contains(named), "{named}: {refused}");
        assert!(refused.message().len() < 1_000, "{refused}");
    }
    assert_eq!(service.containers(), Vec::<String>::new());
    // A DEL needs no more than its key.
    client.del(cni::DelRequest { caller: None, ..del_request("a", 10) }).await.unwrap();
    client.add(good).await.unwrap();
}

#[tokio::test]
async fn o04_a_message_that_is_too_large_is_refused_and_the_server_goes_on() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    let mut request = add_request("a", "web", 10);
    request.pod.as_mut().unwrap().annotations.insert("k".to_owned(), "x".repeat(CALL_BYTES_MAX));
    let refused = client.add(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    client.add(add_request("a", "web", 10)).await.unwrap();
    assert_eq!(service.containers(), ["a"]);
}

#[tokio::test]
async fn o04_bytes_that_are_no_call_end_their_connection_alone() {
    use tokio::io::AsyncWriteExt as _;
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    for junk in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\0", &vec![0xff; 100_000]] {
        let mut stream = tokio::net::UnixStream::connect(&running.path).await.unwrap();
        // It may be closed before all of it is sent.
        let _ = stream.write_all(junk).await;
        client.status(cni::StatusRequest::default()).await.unwrap();
    }
}
