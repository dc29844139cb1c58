//! Going: no new calls, those in flight finished, the listener open until then.

use std::time::{Duration, Instant};

use aether_api::cni;
use aether_domain::limits::DRAIN_LINGER;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tonic::Code;

use crate::support::{PATIENCE, Running, Scripted, add_request, until};

#[tokio::test(flavor = "multi_thread")]
async fn k04_a_drained_server_finishes_what_is_in_flight_and_sends_the_rest_away_to_try_again() {
    let service = Scripted::closed();
    let mut running = Running::start(&service);
    let mut client = running.client().await;
    let mut calls = JoinSet::new();
    calls.spawn(async move { client.add(add_request("a", "web", 10)).await.map(drop) });
    until("the ADD is in flight", || running.handle.adds_in_flight() == 1).await;
    let mut early = running.client().await;
    early.status(cni::StatusRequest::default()).await.unwrap();
    running.handle.drain();
    // On connections that stood, and on new ones: the listener is open until nothing is in flight.
    for mut client in [early, running.client().await] {
        for _ in 0..3 {
            let away = client.add(add_request("b", "db", 10)).await.unwrap_err();
            assert_eq!(away.code(), Code::Unavailable, "{away}");
            assert!(away.message().contains("again"), "{away}");
            assert_eq!(
                client.status(cni::StatusRequest::default()).await.unwrap_err().code(),
                Code::Unavailable
            );
        }
    }
    assert!(running.served.try_join_next().is_none(), "it ended before its call did");
    service.gate.add_permits(1);
    calls.join_next().await.unwrap().unwrap().unwrap();
    let ended = tokio::time::timeout(PATIENCE, running.served.join_next()).await.unwrap();
    ended.unwrap().unwrap().unwrap();
    assert_eq!(service.containers(), ["a"]);
    assert_eq!(running.handle.in_flight(), 0);
    assert!(running.path.exists(), "no agent unlinks the path at exit (T08)");
}

#[tokio::test(flavor = "multi_thread")]
async fn t08_an_idle_server_that_is_drained_ends_although_connections_stay_open() {
    let service = Scripted::open();
    let mut running = Running::start(&service);
    let mut client = running.client().await;
    client.status(cni::StatusRequest::default()).await.unwrap();
    // One that never says anything, and one that stops in the middle of a request.
    let _silent = tokio::net::UnixStream::connect(&running.path).await.unwrap();
    let mut halfway = tokio::net::UnixStream::connect(&running.path).await.unwrap();
    halfway.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let began = Instant::now();
    running.handle.drain();
    let ended = tokio::time::timeout(PATIENCE, running.served.join_next()).await.unwrap();
    ended.unwrap().unwrap().unwrap();
    assert!(began.elapsed() < DRAIN_LINGER * 10 + Duration::from_secs(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_the_drain_waits_for_work_whose_caller_has_left() {
    let service = Scripted::closed();
    let mut running = Running::start(&service);
    let mut client = running.client().await;
    let mut calls = JoinSet::new();
    calls.spawn(async move { drop(client.add(add_request("a", "web", 10)).await) });
    until("the ADD is in flight", || running.handle.adds_in_flight() == 1).await;
    calls.shutdown().await;
    running.handle.drain();
    tokio::task::yield_now().await;
    assert!(running.served.try_join_next().is_none());
    assert_eq!(running.handle.in_flight(), 1);
    service.gate.add_permits(1);
    tokio::time::timeout(PATIENCE, running.served.join_next()).await.unwrap().unwrap().unwrap().unwrap();
    assert_eq!(service.containers(), ["a"]);
}
