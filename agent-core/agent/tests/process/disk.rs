//! A state directory that fails: what cannot be done is said with path, operation, user and reason, and nothing is lost.

use aether_api::cni::Known;
use tonic::Code;

use crate::calls::{plugin, readiness};
use crate::support::{Node, Tmpfs, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_on_a_full_disk_an_add_is_refused_with_the_reason_and_works_again_when_there_is_room() {
    let node = Node::new();
    let _disk = Tmpfs::mount(&node.state(""), "256k");
    let _agent = node.serving("a");
    let mut calls = plugin(&node).await;
    calls.add("before").await.unwrap();
    let filler = node.state("filler");
    assert!(std::fs::write(&filler, vec![0; 1024 * 1024]).is_err(), "the disk is full now");
    let refused = calls.add("one").await.unwrap_err();
    assert_eq!(refused.code(), Code::Internal, "{refused}");
    for part in ["one/eth0", "No space left on device", "state"] {
        assert!(refused.message().contains(part), "{part} is not in {}", refused.message());
    }
    assert_eq!(calls.check("one").await.unwrap(), Known::Missing, "nothing of it is recorded");
    assert_eq!(calls.check("before").await.unwrap(), Known::Managed);
    assert!(calls.del("before").await.unwrap(), "a DEL needs no room");
    std::fs::remove_file(&filler).unwrap();
    calls.add("one").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_on_a_read_only_disk_calls_are_refused_with_the_reason_and_nothing_is_lost() {
    let node = Node::new();
    let disk = Tmpfs::mount(&node.state(""), "1m");
    let agent = node.serving("a");
    let mut calls = plugin(&node).await;
    calls.add("before").await.unwrap();
    disk.remount("ro");
    for refused in [calls.add("one").await.unwrap_err(), calls.del("before").await.unwrap_err()] {
        assert_eq!(refused.code(), Code::Internal, "{refused}");
        assert!(refused.message().contains("Read-only file system"), "{}", refused.message());
    }
    assert_eq!(calls.check("before").await.unwrap(), Known::Managed, "what is on the disk is known");
    agent.kill();
    disk.remount("rw");
    let _agent = node.serving("a");
    let mut calls = plugin(&node).await;
    assert_eq!(calls.check("before").await.unwrap(), Known::Managed);
    assert!(calls.del("before").await.unwrap());
}

#[test]
fn s01_a_state_directory_that_cannot_be_made_is_said_with_the_reason_and_the_flag_and_tried_again() {
    let node = Node::new();
    std::fs::write(node.path("state"), "a file").unwrap();
    let agent = node.start("a");
    let line = agent.logged("cannot take over the pods' records");
    for part in ["--state-dir", &*node.path("state").to_string_lossy(), "Not a directory"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    assert!(!agent.has_logged("serving on"));
    std::fs::remove_file(node.path("state")).unwrap();
    agent.logged("serving on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s01_on_a_disk_that_is_read_only_from_the_start_it_says_what_it_cannot_do() {
    let node = Node::new();
    let disk = Tmpfs::mount(&node.state(""), "1m");
    disk.remount("ro");
    let agent = node.start("a");
    let line = agent.logged("cannot take over the pods' records");
    assert!(line.contains("Read-only file system") && line.contains("--state-dir"), "{line}");
    assert_eq!(readiness(&agent).0, 503, "{:?}", readiness(&agent));
    disk.remount("rw");
    agent.logged("serving on");
    until("it is ready", || match readiness(&agent) {
        (200, _) => Ok(()),
        (_, why) => Err(why),
    });
}
