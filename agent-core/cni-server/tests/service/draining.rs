//! The end of a session: nothing more is accepted, what is in flight is finished, the queue is left to the next one.

use std::time::Instant;

use aether_api::cni;
use aether_domain::limits::{CALLER_WAIT, DRAIN_LINGER};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::{Running, Scripted, add_request, client as client_of, until};

#[tokio::test(flavor = "multi_thread")]
async fn t07_what_is_in_flight_is_finished_and_whoever_comes_later_waits_for_the_next_session() {
    let service = Scripted::closed();
    let mut running = Running::start(&service);
    let mut client = running.client().await;
    let mut calls = JoinSet::new();
    calls.spawn(async move { client.add(add_request("a", "web", 10)).await.map(drop) });
    until("the ADD is in flight", || running.handle.adds_in_flight() == 1).await;
    running.until.cancel();
    // In the queue: connected, and not answered.
    let (mut later, path) = (JoinSet::new(), running.path.clone());
    later.spawn(async move { client_of(&path).await.add(add_request("b", "db", 20)).await.map(drop) });
    tokio::task::yield_now().await;
    assert!(running.served.try_join_next().is_none(), "it ended before its call did");
    service.gate.add_permits(2);
    calls.join_next().await.unwrap().unwrap().unwrap();
    running.ended().await;
    assert_eq!(service.containers(), ["a"], "it accepted after its end");
    assert!(later.try_join_next().is_none(), "a caller in the queue was sent away");
    running.session();
    later.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(service.containers(), ["a", "b"]);
    assert_eq!(running.handle.in_flight(), 0);
    assert!(running.path.exists(), "no agent unlinks the path at exit (T08)");
}

/// Callers that come at any moment, and sessions that end under them: none hears an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn t07_t10_no_call_fails_while_sessions_follow_each_other() {
    const CALLERS: usize = 4;
    let service = Scripted::open();
    let mut running = Running::start(&service);
    let stop = CancellationToken::new();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (path, stop) = (running.path.clone(), stop.clone());
        callers.spawn(async move {
            let mut done = 0_u64;
            while !stop.is_cancelled() {
                let name = format!("c{caller}-{done}");
                client_of(&path).await.add(add_request(&name, "", 10)).await.unwrap();
                done += 1;
            }
            done
        });
    }
    for _ in 0..50 {
        let before = service.containers().len();
        until("calls are answered in this session", || service.containers().len() > before + CALLERS).await;
        running.until.cancel();
        running.ended().await;
        running.session();
    }
    stop.cancel();
    let mut sum = 0;
    while let Some(done) = callers.join_next().await {
        sum += done.unwrap();
    }
    assert_eq!(u64::try_from(service.containers().len()).unwrap(), sum);
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
    running.until.cancel();
    running.ended().await;
    assert!(began.elapsed() < (CALLER_WAIT + DRAIN_LINGER) * 10);
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
    running.until.cancel();
    tokio::task::yield_now().await;
    assert!(running.served.try_join_next().is_none());
    assert_eq!(running.handle.in_flight(), 1);
    service.gate.add_permits(1);
    running.ended().await;
    assert_eq!(service.containers(), ["a"]);
}
