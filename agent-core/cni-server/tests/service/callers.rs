//! Callers that leave in the middle of their call (K16).

use std::sync::Arc;

use aether_domain::pods::{Caller, Presence};
use tokio::task::JoinSet;

use crate::support::{Running, Scripted, add_request, del_request, until};

fn first_caller(service: &Scripted) -> Option<Arc<dyn Caller>> {
    service.callers.lock().unwrap().first().cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_a_caller_that_dies_is_seen_to_be_gone() {
    let service = Scripted::closed();
    let running = Running::start(&service);
    let mut client = running.client().await;
    let mut calls = JoinSet::new();
    calls.spawn(async move { drop(client.add(add_request("a", "web", 10)).await) });
    until("the ADD has begun", || first_caller(&service).is_some()).await;
    let caller = first_caller(&service).unwrap();
    assert_eq!(caller.presence(), Presence::Here);
    // The task owns the connection: it is closed, as the kernel closes a killed plugin's.
    calls.shutdown().await;
    until("its absence is seen", || caller.presence() == Presence::Gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_a_caller_that_resets_its_call_alone_is_seen_to_be_gone() {
    let service = Scripted::closed();
    let running = Running::start(&service);
    let client = running.client().await;
    let mut other = client.clone();
    let mut calls = JoinSet::new();
    let mut resets = client.clone();
    calls.spawn(async move { drop(resets.add(add_request("a", "web", 10)).await) });
    until("the ADD has begun", || first_caller(&service).is_some()).await;
    let caller = first_caller(&service).unwrap();
    calls.shutdown().await;
    until("its absence is seen", || caller.presence() == Presence::Gone).await;
    // The connection goes on, and so does its next call.
    service.gate.add_permits(2);
    other.add(add_request("b", "db", 10)).await.unwrap();
    let callers = service.callers.lock().unwrap();
    assert_eq!(callers.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_work_that_was_begun_goes_on_when_its_caller_leaves() {
    let service = Scripted::open();
    let running = Running::start(&service);
    running.client().await.add(add_request("a", "web", 10)).await.unwrap();
    // From here on every call waits.
    service.gate.forget_permits(usize::MAX);
    let mut client = running.client().await;
    let mut calls = JoinSet::new();
    calls.spawn(async move { drop(client.del(del_request("a", 20)).await) });
    until("the DEL has begun", || running.handle.in_flight() == 1).await;
    calls.shutdown().await;
    // Its handler is dropped; nothing says when, and nothing may depend on it.
    service.gate.add_permits(1);
    until("the DEL is done", || service.containers().is_empty()).await;
    until("and counted", || running.counted.answered.lock().unwrap().len() == 2).await;
}

/// Every connection at once, as a node's runtime makes them (H10): the stamps decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k05_k07_k16_two_hundred_parallel_calls_of_fifty_pods_end_as_the_stamps_say() {
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut calls = JoinSet::new();
    for pod in 0..50_usize {
        let (name, old, new) = (format!("p{pod:02}"), format!("old{pod:02}"), format!("new{pod:02}"));
        let requests: [(&str, u64, bool); 4] = [
            (&old, 10, true),
            (&old, 20, false),
            (&new, 30, true),
            // Every second new sandbox is deleted; the others' old ones once more.
            if pod % 2 == 0 { (&new, 40, false) } else { (&old, 40, false) },
        ];
        for index in 0..4 {
            let (container, started, is_add) = requests[(index + pod) % 4];
            let (container, name, path) = (container.to_owned(), name.clone(), running.path.clone());
            calls.spawn(async move {
                let mut client = crate::support::client(&path).await;
                if is_add {
                    // Refusals are among the expected: an ADD that comes after its DEL.
                    drop(client.add(add_request(&container, &name, started)).await);
                } else {
                    client.del(del_request(&container, started)).await.unwrap();
                }
            });
        }
    }
    assert_eq!(calls.len(), 200);
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    let expected: Vec<String> =
        (0..50).filter(|pod| pod % 2 == 1).map(|pod| format!("new{pod:02}")).collect();
    assert_eq!(service.containers(), expected);
}
