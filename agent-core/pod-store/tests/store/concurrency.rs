//! Many calls at once (H10): whatever the order in which they are served, the stamps decide.

use aether_domain::pods::PodService as _;
use tokio::task::JoinSet;

use crate::support::{Ground, Leaves, add, at, containers, del, on_disk, record_of};

const PODS: usize = 50;

/// Each pod: an old sandbox that is added and deleted, a new one that is added and, for every second pod, deleted. In any
/// order: each call is a task of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k05_k07_k16_two_hundred_parallel_calls_of_fifty_pods_end_as_the_stamps_say() {
    for round in 0..5 {
        let ground = Ground::new();
        let store = ground.owner().await;
        let mut calls = JoinSet::new();
        for pod in 0..PODS {
            let (name, old, new) = (format!("p{pod}"), format!("old{pod}"), format!("new{pod}"));
            let mut of_pod: Vec<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
            let (s, record) = (store.clone(), record_of(&old, &name, 10));
            of_pod.push(Box::pin(async move { drop(add(&s, record).await) }));
            let (s, container) = (store.clone(), old.clone());
            of_pod.push(Box::pin(async move { drop(del(&s, &container, 20).await.unwrap()) }));
            let (s, record) = (store.clone(), record_of(&new, &name, 30));
            // It is the latest of its pod: nothing may refuse it but its own DEL.
            of_pod.push(Box::pin(async move { assert!(add(&s, record).await.is_ok() || pod % 2 == 0) }));
            let (s, container) = (store.clone(), new.clone());
            if pod % 2 == 0 {
                of_pod.push(Box::pin(async move { drop(del(&s, &container, 40).await.unwrap()) }));
            } else {
                // A retry of the same call whose caller goes away in the middle of it.
                let record = record_of(&old, &name, 10);
                of_pod.push(Box::pin(async move { drop(s.add(record, Leaves::after(1)).await) }));
            }
            let by = round * 7 + pod;
            of_pod.rotate_left(by % 4);
            for call in of_pod {
                calls.spawn(call);
            }
        }
        assert_eq!(calls.len(), 200);
        while let Some(ended) = calls.join_next().await {
            ended.unwrap();
        }
        let mut expected: Vec<String> =
            (0..PODS).filter(|pod| pod % 2 == 1).map(|pod| format!("new{pod}")).collect();
        expected.sort();
        assert_eq!(containers(&store.records()), expected, "round {round}");
        assert_eq!(store.records(), on_disk(&ground.state_dir).await, "the table is the disk");
    }
}

/// Tombstones, sweeps and reloads in the middle of it change nothing of what the stamps say.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn k07_k16_tombstones_and_reloads_among_the_calls_lose_nothing() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let mut calls = JoinSet::new();
    for pod in 0..PODS {
        let container = format!("c{pod}");
        ground.tombstone(&container, at(15));
        for started in [10, 20] {
            let (s, record) = (store.clone(), record_of(&container, &container, started));
            calls.spawn(async move { drop(add(&s, record).await) });
        }
        let s = store.clone();
        calls.spawn(async move {
            let _ = s.apply_tombstones().await.unwrap();
        });
        if pod % 10 == 0 {
            let s = store.clone();
            calls.spawn(async move { drop(s.reload().await.unwrap()) });
        }
    }
    while let Some(ended) = calls.join_next().await {
        ended.unwrap();
    }
    let records = store.records();
    assert_eq!(records.len(), PODS);
    assert!(records.iter().all(|record| record.started == at(20)));
    assert_eq!(records, on_disk(&ground.state_dir).await);
    assert_eq!(std::fs::read_dir(ground.deletes()).unwrap().count(), 0);
}
