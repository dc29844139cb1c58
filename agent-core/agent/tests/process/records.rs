//! What survives: S01, S02, S06.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aether_domain::clock::{BootId, Stamp};
use aether_durable::boot;

use crate::calls::{admin, plugin, put_record, record, record_file, try_plugin};
use crate::support::{Node, until};

fn ids(pods: &aether_api::admin::PodsResponse) -> Vec<String> {
    let id = |text: &String| {
        let record: serde_json::Value = serde_json::from_str(text).unwrap();
        record["container"].as_str().unwrap().to_owned()
    };
    let mut ids: Vec<String> = pods.records.iter().map(id).collect();
    ids.sort();
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_what_was_answered_survives_a_kill() {
    let node = Node::new();
    let agent = node.serving("a");
    let mut calls = plugin(&node).await;
    for id in ["one", "two", "three"] {
        calls.add(id).await.unwrap();
    }
    assert!(calls.del("two").await.unwrap());
    agent.kill();
    let agent = node.serving("a");
    assert_eq!(ids(&admin(&agent).await.pods().await), ["one", "three"]);
    agent.stop();
    let agent = node.serving("a");
    assert_eq!(ids(&admin(&agent).await.pods().await), ["one", "three"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s06_records_of_another_boot_are_dropped_at_start() {
    let node = Node::new();
    let now = boot::now().unwrap();
    put_record(&node, &record("this", now.clone()));
    let other = Stamp::new(BootId::new("00000000-0000-4000-8000-000000000000"), now.nanos);
    put_record(&node, &record("other", other));
    let agent = node.serving("a");
    assert_eq!(ids(&admin(&agent).await.pods().await), ["this"]);
    agent.logged("dropped records of pods that are gone");
    assert!(!node.state("pods").join(record_file("other")).exists());
    assert!(node.state("pods").join(record_file("this")).exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s02_damaged_newer_foreign_and_wrong_named_files_do_not_keep_the_others_from_loading() {
    let node = Node::new();
    put_record(&node, &record("good", boot::now().unwrap()));
    let good = std::fs::read(node.state("pods").join(record_file("good"))).unwrap();
    let newer = br#"{"format":9,"oldestReader":9,"shape":"unknown"}"#;
    let put = |name: &str, bytes: &[u8]| std::fs::write(node.state("pods").join(name), bytes).unwrap();
    put(&record_file("empty"), b"");
    put(&record_file("half"), &good[..good.len() / 2]);
    put(&record_file("newer"), newer);
    put(&record_file("misnamed"), &good);
    put("README", b"whose is this?");
    std::fs::create_dir(node.state("pods").join(record_file("directory"))).unwrap();
    let agent = node.serving("a");
    let pods = admin(&agent).await.pods().await;
    assert_eq!(ids(&pods), ["good"]);
    let reasons: Vec<String> =
        pods.unusable.iter().map(|found| format!("{}: {}", found.file, found.reason)).collect();
    for (name, part) in
        [("empty", "damaged"), ("half", "damaged"), ("newer", "format 9"), ("misnamed", ""), ("README", "")]
    {
        let named = reasons.iter().find(|line| line.contains(name));
        assert!(named.is_some_and(|line| line.contains(part)), "{name} with {part:?} is not in {reasons:#?}");
    }
    assert_eq!(
        std::fs::read(node.state("pods").join(record_file("newer"))).unwrap(),
        newer,
        "a roll back loses nothing"
    );
    assert_eq!(std::fs::read(node.state("pods").join("README")).unwrap(), b"whose is this?");
    assert!(!node.state("pods").join(record_file("empty")).exists(), "it is put aside");
    // The node works on: another pod comes and goes.
    let mut calls = plugin(&node).await;
    calls.add("later").await.unwrap();
    assert!(calls.del("later").await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k05_the_last_sandbox_of_a_pod_is_the_one_that_is_recorded_across_a_restart() {
    let node = Node::new();
    let agent = node.serving("a");
    let mut older = record("older", boot::now().unwrap());
    older.pod.name = "pod-newer".to_owned();
    plugin(&node).await.add("newer").await.unwrap();
    agent.kill();
    // As a crash between the new record and the removal of the old one leaves it.
    put_record(&node, &older);
    let agent = node.serving("a");
    assert_eq!(ids(&admin(&agent).await.pods().await), ["newer"]);
}

/// What the calls of one round came to, by container id: `Some(recorded)` where the agent answered, `None` where it was
/// killed before it did.
type Answers = BTreeMap<String, Option<bool>>;

/// Adds and deletes pods until the agent is gone.
async fn load(node: Arc<Node>, round: usize, lane: usize, answered: Arc<AtomicUsize>) -> Answers {
    let mut answers = Answers::new();
    let Ok(mut calls) = try_plugin(&node).await else { return answers };
    for number in 0.. {
        let id = format!("r{round}-{lane}-{number}");
        answers.insert(id.clone(), None);
        if calls.add(&id).await.is_err() {
            break;
        }
        answers.insert(id.clone(), Some(true));
        answered.fetch_add(1, Ordering::SeqCst);
        if number % 2 == 0 {
            answers.insert(id.clone(), None);
            if calls.del(&id).await.is_err() {
                break;
            }
            answers.insert(id, Some(false));
        }
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_k07_killed_a_hundred_times_under_load_it_keeps_every_answer_and_tears_nothing() {
    let node = Arc::new(Node::new());
    let mut expected = Answers::new();
    for round in 0..100_usize {
        let agent = node.serving("a");
        let answered = Arc::new(AtomicUsize::new(0));
        let lanes =
            [1, 2].map(|lane| tokio::spawn(load(Arc::clone(&node), round, lane, Arc::clone(&answered))));
        let enough = 1 + round % 5;
        until("some answers", || match answered.load(Ordering::SeqCst) {
            count if count >= enough => Ok(()),
            count => Err(format!("{count} of {enough}")),
        });
        // pause: the kill's moment is the variable of this test: at ever other points of the call that follows.
        std::thread::sleep(Duration::from_micros((round as u64 * 997) % 5_000));
        agent.kill();
        for lane in lanes {
            expected.extend(lane.await.unwrap());
        }
    }
    let agent = node.serving("a");
    let pods = admin(&agent).await.pods().await;
    let there = ids(&pods);
    for (id, answer) in &expected {
        if let Some(recorded) = answer {
            assert_eq!(there.contains(id), *recorded, "{id} was answered otherwise");
        }
    }
    assert_eq!(pods.unusable, [], "nothing is torn");
    let left = || {
        std::fs::read_dir(node.state("pods"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    assert_eq!(left().len(), there.len(), "nothing but records is left: {:?}", left());
    let sockets = std::fs::read_dir(node.path("run")).unwrap().count();
    assert_eq!(sockets, 3, "the lock and two sockets");
}
