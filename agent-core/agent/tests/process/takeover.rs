//! Two agents and more on one node: T03-T13, B02.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aether_api::cni::Known;
use rustix::process::Signal;

use crate::calls::{admin, plugin, probe, put_tombstone, readiness, try_plugin};

use crate::support::{Agent, Node, tree, until};

fn inode(path: &Path) -> u64 {
    path.symlink_metadata().unwrap().ino()
}

/// A standby that is complete, and that the owner has chosen.
fn complete(node: &Node, local: &str, owner: &Agent) -> Agent {
    let before = chosen(owner);
    let standby = node.start_with(local, &["--pod-name", local]);
    standby.logged("attached to the owner");
    until("the standby is chosen", || if chosen(owner) > before { Ok(()) } else { Err(String::new()) });
    until("the standby is ready", || match readiness(&standby) {
        (200, _) => Ok(()),
        (_, why) => Err(why),
    });
    standby
}

fn chosen(owner: &Agent) -> usize {
    owner.lines().iter().filter(|line| line.contains("is complete and is to take over")).count()
}

/// Calls that come without a pause, each on a connection of its own; a call that fails on a lost connection is tried again,
/// as the plugin does (K04), and counted.
struct Load {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<(u32, u32)>,
}

impl Load {
    fn start(node: &Arc<Node>) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (node, stopped) = (Arc::clone(node), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let (mut done, mut again) = (0, 0);
            while !stopped.load(Ordering::SeqCst) {
                let id = format!("load{done}");
                for deleting in [false, true] {
                    while let Err(why) = Self::call(&node, &id, deleting).await {
                        again += 1;
                        assert!(again < 1000, "{why}");
                    }
                }
                done += 1;
            }
            (done, again)
        });
        Self { stop, task }
    }

    async fn call(node: &Node, id: &str, deleting: bool) -> Result<(), String> {
        let mut plugin = try_plugin(node).await.map_err(|error| error.to_string())?;
        let called = if deleting { plugin.del(id).await.map(drop) } else { plugin.add(id).await.map(drop) };
        called.map_err(|status| status.to_string())
    }

    /// How many calls were answered, and how many had to be made again.
    async fn end(self) -> (u32, u32) {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t07_t10_t13_a_planned_roll_hands_the_queue_over_and_no_call_is_even_made_again() {
    let node = Arc::new(Node::new());
    let mut owner = node.serving("a");
    let sockets = [node.run("cni.sock"), node.run("handover.sock")].map(|path| (inode(&path), path));
    plugin(&node).await.add("kept").await.unwrap();
    let load = Load::start(&node);
    for local in ["b", "c", "d"] {
        let standby = complete(&node, local, &owner);
        owner.signal(Signal::TERM);
        standby.logged("serving on the handed-over CNI socket");
        standby.logged("serving on the handed-over hand-over socket");
        assert_eq!(owner.ended().code(), Some(0));
        let told = admin(&standby).await.takeover().await;
        assert!(told.locked && told.yours, "{told:?}");
        assert_eq!((told.role.as_str(), told.name.as_str()), ("owner", local));
        let steps: Vec<_> = told.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(steps[..5], ["lock", "paths", "tombstones", "reconcile", "serve"], "{told:?}");
        owner = standby;
    }
    let (done, again) = load.end().await;
    assert!(done > 0);
    assert_eq!(again, 0, "calls that had to be made again, of {done}");
    for (before, path) in sockets {
        assert_eq!(inode(&path), before, "{} was bound anew", path.display());
    }
    // T08: the kernel names whoever serves.
    let stream = tokio::net::UnixStream::connect(node.run("cni.sock")).await.unwrap();
    assert_eq!(stream.peer_cred().unwrap().pid(), Some(owner.pid().as_raw_nonzero().get()));
    assert_eq!(plugin(&node).await.check("kept").await.unwrap(), Known::Managed);
    assert_eq!(std::fs::read_dir(node.state("pods")).unwrap().count(), 1, "a ghost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t09_t10_an_owner_that_is_killed_or_stopped_and_killed_is_taken_over_and_nothing_is_lost() {
    let node = Arc::new(Node::new());
    let mut owner = node.serving("a");
    plugin(&node).await.add("kept").await.unwrap();
    let load = Load::start(&node);
    for (local, stopped) in [("b", false), ("c", true), ("d", false)] {
        let standby = complete(&node, local, &owner);
        if stopped {
            owner.signal(Signal::STOP);
        }
        owner.kill();
        standby.logged("serving on the handed-over CNI socket");
        let told = admin(&standby).await.takeover().await;
        assert!(told.locked && !told.yours, "{told:?}");
        owner = standby;
    }
    load.end().await;
    assert_eq!(plugin(&node).await.check("kept").await.unwrap(), Known::Managed);
    assert_eq!(std::fs::read_dir(node.state("pods")).unwrap().count(), 1, "a ghost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t05_s03_what_the_old_owner_changed_and_tombstones_are_taken_in_before_the_first_call() {
    let node = Node::new();
    let owner = node.serving("a");
    let mut calls = plugin(&node).await;
    calls.add("gone").await.unwrap();
    let standby = complete(&node, "b", &owner);
    calls.add("new").await.unwrap();
    calls.del("gone").await.unwrap();
    calls.add("buried").await.unwrap();
    owner.signal(Signal::STOP);
    let tombstone = put_tombstone(&node, "buried", aether_durable::boot::now().unwrap());
    owner.kill();
    standby.logged("serving on the handed-over CNI socket");
    let mut calls = plugin(&node).await;
    for (id, known) in [("new", Known::Managed), ("gone", Known::Missing), ("buried", Known::Missing)] {
        assert_eq!(calls.check(id).await.unwrap(), known, "{id}");
    }
    assert!(!tombstone.exists());
    let told = admin(&standby).await.takeover().await;
    assert_eq!((told.added, told.removed, told.tombstones), (1, 1, 1), "{told:?}");
}

#[test]
fn t03_t09_a_complete_standby_leaves_no_trace_and_is_forgotten_when_it_ends() {
    let node = Node::new();
    let owner = node.serving("a");
    let before: Vec<_> = ["run", "state", "net.d"].map(|below| tree(&node.path(below))).into();
    let standby = complete(&node, "b", &owner);
    let after: Vec<_> = ["run", "state", "net.d"].map(|below| tree(&node.path(below))).into();
    assert_eq!(after, before, "a complete standby left something on the node");
    standby.stop();
    let after: Vec<_> = ["run", "state", "net.d"].map(|below| tree(&node.path(below))).into();
    assert_eq!(after, before, "a standby that has ended left something on the node");
    owner.stop();
}

/// A compiler of modules that takes until `done` exists: the standby's gate for the operator's modules stays shut.
fn slow_compiler(node: &Node) -> String {
    let script = node.path("compiler");
    let done = node.path("done");
    // It ends with the test's directory, whoever is killed before.
    let waits = format!("[ ! -e {} ] && [ -e {} ]", done.display(), script.display());
    let text = format!("#!/bin/sh\nwhile {waits}; do sleep 0.05; done\nexit 1\n");
    crate::support::script(&script, &text);
    std::fs::create_dir_all(node.path("modules")).unwrap();
    std::fs::write(node.path("modules/slow.toml"), "world = \"pod-policy\"\non-failure = \"allow\"\n")
        .unwrap();
    std::fs::write(node.path("modules/slow.wasm"), b"\0asm\x0d\0\x01\0").unwrap();
    script.to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t04_t12_sigterm_is_put_off_while_the_attached_standby_is_incomplete_and_obeyed_when_it_is_complete()
{
    let node = Node::new();
    let mut owner = node.serving("a");
    let compiler = slow_compiler(&node);
    let standby = node.start_with("b", &["--module-compiler", &compiler]);
    standby.logged("attached to the owner");
    until("the gate is named", || match readiness(&standby) {
        (503, why) if why == "not ready: policies\n" => Ok(()),
        other => Err(format!("{other:?}")),
    });
    owner.signal(Signal::TERM);
    owner.logged("SIGTERM is put off");
    plugin(&node).await.add("meanwhile").await.unwrap();
    assert_eq!(readiness(&owner).0, 200);
    std::fs::write(node.path("done"), "").unwrap();
    standby.logged("serving on the handed-over CNI socket");
    assert_eq!(owner.ended().code(), Some(0));
    assert_eq!(plugin(&node).await.check("meanwhile").await.unwrap(), Known::Managed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t07_a_drain_is_taken_back_when_the_chosen_standby_dies_and_calls_are_answered_again() {
    let node = Node::new().with_directories();
    // An ADD that hangs in its flush keeps the drain going.
    let owner = node.start_traced(
        "a",
        &["-e", "trace=fsync", "-e", "inject=fsync:delay_enter=1000000:when=1+2"],
        &[],
    );
    owner.logged("serving on");
    let standby = complete(&node, "b", &owner);
    let mut slow = plugin(&node).await;
    let adding = tokio::spawn(async move { slow.add("slow").await.is_ok() });
    until("the ADD in flight", || {
        let names = std::fs::read_dir(node.state("pods")).unwrap().count();
        if names > 0 { Ok(()) } else { Err("nothing is written yet".to_owned()) }
    });
    owner.signal(Signal::TERM);
    owner.logged("draining");
    let queued = plugin(&node).await;
    standby.kill();
    owner.logged("serving again");
    let mut queued = queued;
    queued.add("queued").await.unwrap();
    assert!(adding.await.unwrap());
    assert_eq!(readiness(&owner).0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t13_of_three_agents_the_newest_complete_takes_over_and_the_other_attaches_to_it() {
    let node = Node::new();
    let owner = node.serving("a");
    let older = complete(&node, "b", &owner);
    let newer = complete(&node, "c", &owner);
    let told = admin(&owner).await.takeover().await;
    let names: Vec<_> = told.standbys.iter().map(|one| (one.name.as_str(), one.chosen)).collect();
    assert_eq!(names, [("c", true), ("b", false)]);
    // It tries for the lock too, and may be quicker than the one that wakes up in flock (T13).
    older.signal(Signal::STOP);
    owner.stop();
    newer.logged("serving on the handed-over CNI socket");
    older.signal(Signal::CONT);
    until("the older is attached to the newer", || {
        let attached = older.lines().iter().filter(|line| line.contains("attached to the owner c")).count();
        if attached == 1 { Ok(()) } else { Err(older.lines().join("\n")) }
    });
    newer.kill();
    older.logged("serving on the handed-over CNI socket");
    plugin(&node).await.add("one").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t01_t13_a_path_that_was_removed_is_bound_anew_and_a_strangers_socket_is_left_alone_and_named() {
    let node = Node::new();
    let owner = node.serving("a");
    let standby = complete(&node, "b", &owner);
    std::fs::remove_file(node.run("cni.sock")).unwrap();
    owner.logged("no longer names our socket");
    until("it is bound anew", || {
        UnixStream::connect(node.run("cni.sock")).map(drop).map_err(|e| e.to_string())
    });
    plugin(&node).await.add("one").await.unwrap();
    // The standby has duplicates of the new one, and serves on it.
    owner.kill();
    standby.logged("serving on the handed-over CNI socket");
    std::fs::remove_file(node.run("cni.sock")).unwrap();
    let stranger = UnixListener::bind(node.run("cni.sock")).unwrap();
    let line = standby.logged("listens on the CNI socket");
    assert!(line.contains(&format!("process {}", std::process::id())), "{line}");
    drop(stranger);
    until("it is served again", || {
        UnixStream::connect(node.run("cni.sock")).map(drop).map_err(|e| e.to_string())
    });
    assert_eq!(plugin(&node).await.check("one").await.unwrap(), Known::Managed);
}

#[test]
fn b01_b02_each_agent_answers_its_own_probes_and_a_stopped_one_is_not_answered_for() {
    let node = Node::new();
    let owner = node.serving("a");
    let standby = complete(&node, "b", &owner);
    for agent in [&owner, &standby] {
        assert_eq!(readiness(agent), (200, "ready\n".to_owned()));
        assert_eq!(probe(agent, "/livez"), (200, "live\n".to_owned()));
    }
    assert_ne!(inode(&owner.local("health.sock")), inode(&standby.local("health.sock")));
}
