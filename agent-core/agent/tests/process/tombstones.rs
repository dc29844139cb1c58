//! DELs that found no agent: K07.

use std::time::{Duration, Instant};

use aether_api::cni::Known;
use aether_domain::clock::{BootId, Stamp};
use aether_durable::boot;

use crate::calls::{admin, plugin, put_tombstone, record_file};
use crate::support::{Node, until};

fn gone(path: &std::path::Path) -> Result<(), String> {
    if path.symlink_metadata().is_err() { Ok(()) } else { Err(format!("{} is there", path.display())) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k07_a_tombstone_written_while_the_owner_was_stopped_is_applied_before_it_serves() {
    let node = Node::new();
    let agent = node.serving("a");
    let mut calls = plugin(&node).await;
    calls.add("one").await.unwrap();
    calls.add("two").await.unwrap();
    drop(calls);
    agent.stop();
    let tombstone = put_tombstone(&node, "one", boot::now().unwrap());
    let agent = node.serving("a");
    agent.logged("applied 1 tombstone(s)");
    agent.logged("read 1 record(s)");
    assert!(gone(&tombstone).is_ok() && gone(&node.state("pods").join(record_file("one"))).is_ok());
    let mut calls = plugin(&node).await;
    assert_eq!(calls.check("one").await.unwrap(), Known::Missing);
    assert_eq!(calls.check("two").await.unwrap(), Known::Managed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k07_a_tombstone_written_while_the_owner_serves_is_applied_within_a_second() {
    let node = Node::new();
    let agent = node.serving("a");
    plugin(&node).await.add("one").await.unwrap();
    let began = Instant::now();
    let tombstone = put_tombstone(&node, "one", boot::now().unwrap());
    until("the tombstone's end", || gone(&tombstone));
    // A second by the rule; ten times that here.
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    assert!(gone(&node.state("pods").join(record_file("one"))).is_ok(), "the record goes first");
    assert!(admin(&agent).await.pods().await.records.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k07_a_late_tombstone_never_deletes_a_newer_add() {
    let node = Node::new();
    let agent = node.serving("a");
    let before = boot::now().unwrap();
    plugin(&node).await.add("one").await.unwrap();
    let tombstone = put_tombstone(&node, "one", before);
    until("the tombstone's end", || gone(&tombstone));
    assert_eq!(admin(&agent).await.pods().await.records.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k07_s06_a_tombstone_of_another_boot_is_dropped_without_effect() {
    let node = Node::new();
    let agent = node.serving("a");
    plugin(&node).await.add("one").await.unwrap();
    let other = Stamp::new(BootId::new("00000000-0000-4000-8000-000000000000"), u64::MAX);
    let tombstone = put_tombstone(&node, "one", other);
    until("the tombstone's end", || gone(&tombstone));
    assert_eq!(admin(&agent).await.pods().await.records.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k07_thousands_of_tombstones_do_not_keep_the_node_from_serving() {
    let node = Node::new();
    std::fs::create_dir_all(node.state("pods")).unwrap();
    let now = boot::now().unwrap();
    let first = put_tombstone(&node, "id0", now.clone());
    for number in 1..=aether_domain::limits::TOMBSTONES_MAX {
        // Written plainly: an fsync each would take minutes, and it is the reader that is tested.
        let text = std::fs::read_to_string(&first).unwrap().replace("\"id0\"", &format!("\"id{number}\""));
        let name = format!("id{number}+eth0.{:020}", now.nanos);
        std::fs::write(node.state("deletes").join(name), text).unwrap();
    }
    let agent = node.serving("a");
    agent.logged("applied 10001 tombstone(s)");
    assert_eq!(std::fs::read_dir(node.state("deletes")).unwrap().count(), 0);
    plugin(&node).await.add("one").await.unwrap();
}
