//! ADD, DEL, CHECK and GC, one after another.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, OnceLock};

use aether_domain::clock::{BootId, Stamp};
use aether_domain::managed::Managed;
use aether_domain::pods::{
    AddError, Added, Caller, Change, Check, Del, Deleted, FirstInstall, Gc, Known, PodService as _, Presence,
    Refusal, ServiceError,
};
use aether_domain::record::Record;

use crate::support::{
    Ground, Here, Leaves, add, at, containers, del, key, names, on_disk, record, record_of, store_at,
};

#[tokio::test]
async fn s01_an_acknowledged_add_is_a_file_of_mode_0600_that_holds_the_record() {
    let ground = Ground::new();
    let store = ground.owner().await;
    assert_eq!(add(&store, record("a.b", 10)).await.unwrap(), Added::Recorded);
    assert_eq!(names(&ground.pods()), ["a%2Eb+eth0.json"]);
    assert_eq!(on_disk(&ground.state_dir).await, [record("a.b", 10)]);
    for (path, mode) in [
        (ground.record_file("a.b"), 0o600),
        (ground.pods(), 0o700),
        (ground.deletes(), 0o700),
        (ground.state_dir.clone(), 0o700),
    ] {
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode, "{}", path.display());
    }
    assert_eq!(ground.heard.take(), [Change::Added(Box::new(record("a.b", 10)))]);
}

#[tokio::test]
async fn t03_a_standby_serves_nothing_and_writes_nothing() {
    let ground = Ground::new();
    let store = ground.store();
    assert!(matches!(add(&store, record("a", 10)).await, Err(AddError::NotServing(_))));
    assert!(matches!(del(&store, "a", 10).await, Err(ServiceError::NotServing(_))));
    let check = Check { key: key("a"), netns_created: None };
    assert!(matches!(store.check(check).await, Err(ServiceError::NotServing(_))));
    let gc = Gc { network: "net".parse().unwrap(), valid: BTreeSet::new(), started: at(20) };
    assert!(matches!(store.gc(gc).await, Err(ServiceError::NotServing(_))));
    assert!(matches!(store.status().await, Err(ServiceError::NotServing(_))));
    store.reload().await.unwrap();
    assert!(!ground.state_dir.exists());
    store.enable().await.unwrap();
    store.status().await.unwrap();
}

#[tokio::test]
async fn k05_the_same_add_again_writes_nothing_new() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record("a", 10)).await.unwrap();
    let inode = ground.record_file("a").metadata().unwrap().ino();
    assert_eq!(add(&store, record("a", 10)).await.unwrap(), Added::Standing);
    assert_eq!(ground.record_file("a").metadata().unwrap().ino(), inode);
    assert!(matches!(add(&store, record("a", 9)).await, Err(AddError::Refused(Refusal::Superseded { .. }))));
    assert_eq!(add(&store, record("a", 11)).await.unwrap(), Added::Recorded);
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 11)]);
    assert!(matches!(ground.heard.take().as_slice(), [Change::Added(_), Change::Updated { .. }]));
}

#[tokio::test]
async fn k05_a_new_sandbox_replaces_the_old_one_and_the_old_ones_del_does_not_remove_it() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record_of("old", "web", 10)).await.unwrap();
    assert_eq!(add(&store, record_of("new", "web", 20)).await.unwrap(), Added::Replaced(vec![key("old")]));
    assert_eq!(names(&ground.pods()), ["new+eth0.json"]);
    assert_eq!(del(&store, "old", 30).await.unwrap(), Deleted::Absent);
    let late = add(&store, record_of("late", "web", 15)).await;
    assert!(matches!(late, Err(AddError::Refused(Refusal::Superseded { .. }))), "{late:?}");
    assert_eq!(on_disk(&ground.state_dir).await, [record_of("new", "web", 20)]);
}

#[tokio::test]
async fn k07_del_is_a_success_for_an_unknown_id_and_twice() {
    let ground = Ground::new();
    let store = ground.owner().await;
    assert_eq!(del(&store, "never", 10).await.unwrap(), Deleted::Absent);
    add(&store, record("a", 20)).await.unwrap();
    assert_eq!(del(&store, "a", 30).await.unwrap(), Deleted::Removed(Box::new(record("a", 20))));
    assert_eq!(del(&store, "a", 30).await.unwrap(), Deleted::Absent);
    assert!(names(&ground.pods()).is_empty());
}

#[tokio::test]
async fn k07_an_add_that_began_before_a_del_is_refused_after_it() {
    let ground = Ground::new();
    let store = ground.owner().await;
    del(&store, "a", 30).await.unwrap();
    let refused = add(&store, record("a", 20)).await;
    assert!(matches!(&refused, Err(AddError::Refused(Refusal::Deleted { .. }))), "{refused:?}");
    assert!(names(&ground.pods()).is_empty());
    add(&store, record("a", 31)).await.unwrap();
    assert_eq!(del(&store, "a", 30).await.unwrap(), Deleted::Spared);
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 31)]);
}

#[tokio::test]
async fn k07_a_live_del_that_does_not_know_its_boot_counts_as_begun_now() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record("a", 20)).await.unwrap();
    let started = Stamp::new(BootId::new(""), 0);
    let deleted = store.del(Del { key: key("a"), started, request_id: "r".parse().unwrap() }).await.unwrap();
    assert_eq!(deleted, Deleted::Removed(Box::new(record("a", 20))));
}

struct Installed(u64);

impl FirstInstall for Installed {
    fn first_installed(&self) -> Option<u64> {
        Some(self.0)
    }
}

#[tokio::test]
async fn k09_check_knows_managed_unmanaged_older_and_missing() {
    let ground = Ground::new();
    let store = store_at(&ground.state_dir, Arc::new(()), Arc::new(Installed(1_000)));
    store.enable().await.unwrap();
    add(&store, record("a", 10)).await.unwrap();
    add(&store, Record { managed: Managed::OptedOut, ..record("b", 10) }).await.unwrap();
    for (container, netns_created, known) in [
        ("a", Some(1), Known::Managed),
        ("b", None, Known::Unmanaged),
        ("x", Some(999), Known::BeforeInstall),
        ("x", Some(1_000), Known::Missing),
        ("x", None, Known::Missing),
    ] {
        let check = Check { key: key(container), netns_created };
        assert_eq!(store.check(check).await.unwrap(), known, "{container} {netns_created:?}");
    }
}

#[tokio::test]
async fn k11_gc_removes_a_networks_stale_records_and_no_others() {
    let ground = Ground::new();
    let store = ground.owner().await;
    for container in ["listed", "stale", "stale2"] {
        add(&store, record(container, 10)).await.unwrap();
    }
    add(&store, record("younger", 30)).await.unwrap();
    add(&store, Record { network: "other".parse().unwrap(), ..record("elsewhere", 10) }).await.unwrap();
    let gc = |valid: &[&str]| Gc {
        network: "net".parse().unwrap(),
        valid: valid.iter().map(|container| key(container)).collect(),
        started: at(20),
    };
    assert_eq!(store.gc(gc(&["listed", "unknown"])).await.unwrap(), 2);
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["elsewhere", "listed", "younger"]);
    assert_eq!(store.gc(gc(&[])).await.unwrap(), 1);
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["elsewhere", "younger"]);
    assert_eq!(store.gc(gc(&[])).await.unwrap(), 0);
}

#[tokio::test]
async fn k11_gc_of_many_records_takes_several_batches() {
    let ground = Ground::new();
    let store = ground.owner().await;
    for n in 0..300 {
        add(&store, record(&format!("c{n}"), 10)).await.unwrap();
    }
    let gc = Gc { network: "net".parse().unwrap(), valid: BTreeSet::from([key("c7")]), started: at(20) };
    assert_eq!(store.gc(gc).await.unwrap(), 299);
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["c7"]);
}

#[tokio::test]
async fn k16_an_add_whose_caller_is_gone_in_its_turn_is_not_recorded() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let touched = || ground.pods().metadata().unwrap().modified().unwrap();
    let before = touched();
    let gone = store.add(record("a", 10), Leaves::after(0)).await;
    assert!(matches!(gone, Err(AddError::CallerGone { .. })), "{gone:?}");
    assert_eq!(touched(), before, "it was written and taken back");
    assert!(names(&ground.pods()).is_empty());
    assert_eq!(store.records(), []);
    assert_eq!(ground.heard.take(), []);
}

#[tokio::test]
async fn k16_an_add_that_finds_its_caller_gone_before_the_answer_removes_what_it_wrote() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let gone = store.add(record("a", 10), Leaves::after(1)).await;
    assert!(matches!(gone, Err(AddError::CallerGone { .. })), "{gone:?}");
    assert!(names(&ground.pods()).is_empty());
    assert_eq!(store.records(), []);
    assert_eq!(ground.heard.take(), [], "nobody heard of what was taken back");
}

#[tokio::test]
async fn k16_an_undo_puts_back_what_another_call_recorded() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record("a", 10)).await.unwrap();
    assert!(store.add(record("a", 20), Leaves::after(1)).await.is_err());
    assert_eq!(store.records(), [record("a", 10)]);
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 10)]);
    // The sandbox that a call would have replaced stays when the call is undone.
    assert!(store.add(record_of("b", "a", 30), Leaves::after(1)).await.is_err());
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 10)]);
}

/// A caller in whose first look, which comes between decision and write, another ADD is served.
struct Meanwhile {
    store: aether_pod_store::Store,
    other: Mutex<Option<Record>>,
    runtime: tokio::runtime::Handle,
}

impl Caller for Meanwhile {
    fn presence(&self) -> Presence {
        if let Some(other) = self.other.lock().unwrap().take() {
            self.runtime.block_on(add(&self.store, other)).unwrap();
        }
        Presence::Here
    }
}

#[tokio::test]
async fn k05_of_two_sandboxes_that_are_added_at_once_the_later_one_stays_whichever_is_written_first() {
    for (first, second) in [(10, 20), (20, 10)] {
        let ground = Ground::new();
        let store = ground.owner().await;
        let of = |started: u64| record_of(&format!("c{started}"), "web", started);
        let caller = Meanwhile {
            store: store.clone(),
            other: Mutex::new(Some(of(second))),
            runtime: tokio::runtime::Handle::current(),
        };
        let added = store.add(of(first), Arc::new(caller)).await;
        match first {
            20 => assert_eq!(added.unwrap(), Added::Replaced(vec![key("c10")])),
            _ => assert!(matches!(added, Err(AddError::Refused(Refusal::Superseded { .. }))), "{added:?}"),
        }
        assert_eq!(store.records(), [of(20)]);
        assert_eq!(on_disk(&ground.state_dir).await, [of(20)]);
        assert_eq!(names(&ground.pods()), ["c20+eth0.json"]);
    }
}

/// A caller that says when it was looked at, and lets the look wait.
struct Looks {
    seen: std::sync::mpsc::Sender<()>,
    go_on: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl Caller for Looks {
    fn presence(&self) -> Presence {
        // Only the first look is waited for.
        let _ = self.seen.send(());
        self.go_on.lock().unwrap().recv().unwrap();
        Presence::Here
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_calls_of_one_key_are_served_in_order_and_others_do_not_wait() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let (seen, was_seen) = std::sync::mpsc::channel();
    let (go, go_on) = std::sync::mpsc::channel();
    let mut tasks = tokio::task::JoinSet::new();
    let (first, caller) = (store.clone(), Arc::new(Looks { seen, go_on: go_on.into() }));
    tasks
        .spawn(async move { assert_eq!(first.add(record("a", 10), caller).await.unwrap(), Added::Recorded) });
    tokio::task::spawn_blocking(move || was_seen.recv().unwrap()).await.unwrap();
    // The ADD is in the middle of its turn. Its DEL waits, another pod's ADD does not.
    let mut waiting = Box::pin(del(&store, "a", 20));
    assert!(futures_poll(waiting.as_mut()).is_none());
    add(&store, record("b", 10)).await.unwrap();
    assert!(futures_poll(waiting.as_mut()).is_none());
    go.send(()).unwrap();
    go.send(()).unwrap();
    assert_eq!(waiting.await.unwrap(), Deleted::Removed(Box::new(record("a", 10))));
    tasks.join_next().await.unwrap().unwrap();
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn k16_an_add_that_is_dropped_in_the_middle_is_still_done_whole() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let (seen, was_seen) = std::sync::mpsc::channel();
    let (go, go_on) = std::sync::mpsc::channel();
    let caller = Arc::new(Looks { seen, go_on: go_on.into() });
    let mut dropped = Box::pin(store.add(record("a", 10), caller));
    assert!(futures_poll(dropped.as_mut()).is_none());
    tokio::task::spawn_blocking(move || was_seen.recv().unwrap()).await.unwrap();
    drop(dropped);
    go.send(()).unwrap();
    go.send(()).unwrap();
    // The lane is the ADD's until it is done, so the CHECK comes after it.
    let check = Check { key: key("a"), netns_created: None };
    assert_eq!(store.check(check).await.unwrap(), Known::Managed);
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 10)]);
}

#[tokio::test]
async fn s04_a_removal_is_told_after_the_record_is_gone_from_disk_and_table() {
    struct Judge(Mutex<Vec<(bool, bool)>>, std::path::PathBuf, OnceLock<aether_pod_store::Store>);
    impl aether_domain::pods::Observer for Judge {
        fn changed(&self, change: &Change) {
            if let Change::Removed(_) = change {
                let known = !self.2.get().unwrap().records().is_empty();
                self.0.lock().unwrap().push((self.1.exists(), known));
            }
        }
    }
    let ground = Ground::new();
    let judge = Arc::new(Judge(Mutex::default(), ground.record_file("a"), OnceLock::default()));
    let store = store_at(&ground.state_dir, Arc::<Judge>::clone(&judge), Arc::new(()));
    judge.2.set(store.clone()).ok().unwrap();
    store.enable().await.unwrap();
    for round in 1..4 {
        add(&store, record("a", round * 10)).await.unwrap();
        del(&store, "a", round * 10 + 1).await.unwrap();
    }
    assert_eq!(*judge.0.lock().unwrap(), [(false, false); 3]);
}

#[tokio::test]
async fn o04_a_record_too_large_to_be_read_back_is_refused() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let mut large = record("a", 10);
    // Control characters take six bytes each as JSON.
    large.pod.annotations.insert("k".to_owned(), "\u{1}".repeat(200_000));
    let refused = store.add(large, Arc::new(Here)).await;
    assert!(matches!(&refused, Err(AddError::TooLarge { .. })), "{refused:?}");
    assert!(names(&ground.pods()).is_empty());
}

/// Polls once.
fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
