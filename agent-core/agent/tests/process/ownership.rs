//! Who owns the node: T01, T02, T06, T07, T08.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use aether_api::cni::Known;
use rustix::process::Signal;

use crate::calls::{admin, plugin};
use crate::support::{Agent, Node, PATIENCE, tree, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t02_an_agent_that_finds_the_lock_free_serves_and_says_what_each_step_took() {
    let node = Node::new();
    let agent = node.serving("a");
    for said in ["this agent has the node lock", "applied 0 tombstone(s)", "read 0 record(s)", "serving on"] {
        agent.logged(said);
    }
    for step in ["paths", "tombstones", "reconcile", "serve", "modules"] {
        assert!(agent.logged(&format!("\"step\":\"{step}\"")).contains("\"ms\":"));
    }
    let mut plugin = plugin(&node).await;
    plugin.status().await.unwrap();
    plugin.add("one").await.unwrap();
    let pods = admin(&agent).await.pods().await;
    assert_eq!((pods.role.as_str(), pods.records.len()), ("owner", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t01_t03_a_second_agent_waits_binds_nothing_writes_nothing_and_takes_over_at_once() {
    let node = Node::new();
    let first = node.serving("a");
    plugin(&node).await.add("one").await.unwrap();
    let before: Vec<_> = ["run", "state", "net.d"].map(|below| tree(&node.path(below))).into();
    let second = node.start("b");
    second.logged("standing by");
    let mut asked = admin(&second).await;
    let pods = asked.pods().await;
    assert_eq!(
        (pods.role.as_str(), pods.records.len()),
        ("standby", 1),
        "a standby reads the records when it is asked"
    );
    assert_eq!(asked.chain().await.role, "standby");
    let after: Vec<_> = ["run", "state", "net.d"].map(|below| tree(&node.path(below))).into();
    assert_eq!(after, before, "a standby left something on the node");
    first.kill();
    second.logged("serving on");
    assert_eq!(admin(&second).await.pods().await.role, "owner");
    let mut plugin = plugin(&node).await;
    assert_eq!(
        plugin.check("one").await.unwrap(),
        Known::Managed,
        "what the first recorded, the second knows"
    );
    plugin.add("two").await.unwrap();
}

#[test]
fn t01_of_many_agents_exactly_one_serves_at_any_time() {
    let node = Node::new();
    let mut agents: Vec<_> = ["a", "b", "c", "d"].map(|local| node.start(local)).into();
    while !agents.is_empty() {
        let owner = until("one that serves", || {
            agents.iter().position(|agent| agent.has_logged("serving on")).ok_or_else(|| "none".to_owned())
        });
        for agent in &agents {
            agent.logged(if std::ptr::eq(agent, &raw const agents[owner]) {
                "serving on"
            } else {
                "standing by"
            });
        }
        assert_eq!(agents.iter().filter(|agent| agent.has_logged("serving on")).count(), 1);
        agents.remove(owner).kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t01_an_owner_whose_lock_file_was_removed_drains_and_ends_and_says_why() {
    let node = Node::new();
    let mut first = node.serving("a");
    let second = node.start("b");
    second.logged("standing by");
    std::fs::remove_file(node.run("agent.lock")).unwrap();
    assert_eq!(first.ended().code(), Some(3));
    let line = first.logged("removed by hand");
    assert!(line.contains("agent.lock"), "{line}");
    // The one that waited for the old file locks the new one.
    second.logged("serving on");
    plugin(&node).await.add("one").await.unwrap();
    assert!(node.run("agent.lock").exists());
    let third = node.start("c");
    third.logged("standing by");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t06_whoever_answers_on_the_socket_although_the_lock_is_free_is_waited_for_and_named() {
    let node = Node::new();
    std::fs::create_dir_all(node.path("run")).unwrap();
    let listener = UnixListener::bind(node.run("cni.sock")).unwrap();
    let agent = node.start("a");
    let line = agent.logged("listens on the CNI socket");
    assert!(line.contains(&format!("process {}", std::process::id())), "{line}");
    assert_eq!(admin(&agent).await.pods().await.role, "standby");
    assert!(!agent.has_logged("serving on"));
    drop(listener);
    agent.logged("serving on");
    plugin(&node).await.status().await.unwrap();
}

#[test]
fn t07_t08_told_to_stop_while_idle_it_ends_at_once_with_0_and_leaves_the_path() {
    for signal in [Signal::TERM, Signal::INT] {
        let node = Node::new();
        let mut agent = node.serving("a");
        let began = Instant::now();
        agent.signal(signal);
        assert_eq!(agent.ended().code(), Some(0));
        // 50 ms by the rule; ten times that here.
        assert!(began.elapsed() < Duration::from_millis(500), "it took {:?}", began.elapsed());
        assert!(node.run("cni.sock").exists() && node.run("agent.lock").exists());
        node.serving("a").stop();
    }
}

#[test]
fn t07_a_standby_that_is_told_to_stop_ends_at_once_and_leaves_no_trace() {
    let node = Node::new();
    let _first = node.serving("a");
    let before = tree(&node.path("run"));
    let second = node.start("b");
    second.logged("standing by");
    let began = Instant::now();
    second.stop();
    assert!(began.elapsed() < PATIENCE / 10, "it took {:?}", began.elapsed());
    assert_eq!(tree(&node.path("run")), before);
}

/// Starts an ADD that hangs in a flush to the disk for as long as `delay` (microseconds, as strace takes them) says.
async fn hanging_add(node: &Node, delay: &str, more: &[&str]) -> (Agent, tokio::task::JoinHandle<bool>) {
    let inject = format!("inject=fsync:delay_enter={delay}");
    let agent = node.start_traced("a", &["-e", "trace=fsync", "-e", &inject], more);
    agent.logged("serving on");
    let mut slow = plugin(node).await;
    let adding = tokio::spawn(async move { slow.add("one").await.is_ok() });
    until("the ADD in flight", || {
        let names = std::fs::read_dir(node.state("pods")).unwrap().count();
        if names > 0 { Ok(()) } else { Err("nothing is written yet".to_owned()) }
    });
    (agent, adding)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t07_calls_in_flight_are_finished_before_the_end_and_new_ones_are_not_taken() {
    let node = Node::new().with_directories();
    let (mut agent, adding) = hanging_add(&node, "1000000", &[]).await;
    agent.signal(Signal::TERM);
    agent.logged("told to stop");
    agent.logged("draining");
    // In the queue of a listener that nobody else holds: reset at the end, and tried again.
    let mut late = plugin(&node).await;
    let late = tokio::spawn(async move { late.add("late").await });
    assert!(adding.await.unwrap(), "the ADD that was in flight was answered");
    assert_eq!(agent.ended().code(), Some(0));
    late.await.unwrap().expect_err("an ADD was taken although the agent ends");
    let names: Vec<_> =
        std::fs::read_dir(node.state("pods")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [crate::calls::record_file("one").as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t07_a_stop_that_is_sent_again_hurries_nothing_and_an_interrupt_leaves_at_once() {
    for (again, code) in [(Signal::TERM, 0), (Signal::INT, 1)] {
        let node = Node::new().with_directories();
        let (mut agent, adding) = hanging_add(&node, "2000000", &[]).await;
        agent.signal(Signal::TERM);
        agent.logged("draining");
        agent.signal(again);
        agent.logged(if code == 0 { "which is under way" } else { "left at once" });
        assert_eq!(agent.ended().code(), Some(code));
        assert_eq!(adding.await.unwrap(), code == 0, "the ADD that was in flight");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t07_a_call_that_outlives_the_grace_is_left_and_said_so() {
    let node = Node::new().with_directories();
    let (mut agent, adding) = hanging_add(&node, "10000000", &["--termination-grace", "1"]).await;
    agent.signal(Signal::TERM);
    assert_eq!(agent.ended().code(), Some(1));
    agent.logged("CNI calls were still in flight");
    assert!(!adding.await.unwrap());
}
