//! DELs that found no agent (K07).

use std::sync::Arc;
use std::time::{Duration, Instant};

use aether_domain::clock::{BootId, Stamp};
use aether_domain::limits::{TOMBSTONE_POLL, TOMBSTONES_MAX};
use aether_domain::pods::{AddError, NetnsLook, Refusal, Seen, Trouble};
use aether_pod_store::{Applied, StoreError};

use crate::support::{Ground, add, at, containers, del, names, on_disk, record, tombstone};

#[tokio::test]
async fn k07_tombstones_are_applied_before_the_store_serves() {
    let ground = Ground::new();
    let store = ground.owner().await;
    for container in ["a", "b", "c"] {
        add(&store, record(container, 10)).await.unwrap();
    }
    drop(store);
    ground.tombstone("a", at(20));
    ground.tombstone("b", at(5));
    ground.tombstone("never", at(20));
    ground.tombstone("c", Stamp::new(BootId::new("an-earlier-one"), 1 << 60));
    let store = ground.store();
    assert!(matches!(store.apply_tombstones().await, Err(StoreError::NotServing(_))));
    let enabled = store.enable().await.unwrap();
    assert_eq!(enabled.tombstones, Applied { applied: 3, removed: 1, dropped: 1, unusable: 0 });
    assert_eq!(
        containers(&store.records()),
        ["b", "c"],
        "a late one spares a newer ADD, another boot's is dropped"
    );
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["b", "c"]);
    assert!(names(&ground.deletes()).is_empty());
    // A tombstone's start is remembered like a DEL's.
    let late = add(&store, record("never", 19)).await;
    assert!(matches!(late, Err(AddError::Refused(Refusal::Deleted { .. }))), "{late:?}");
}

#[tokio::test]
async fn k07_two_tombstones_of_one_key_are_both_applied() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record("a", 10)).await.unwrap();
    ground.tombstone("a", at(20));
    ground.tombstone("a", at(30));
    assert_eq!(
        store.apply_tombstones().await.unwrap(),
        Applied { applied: 2, removed: 1, ..Applied::default() }
    );
    assert!(add(&store, record("a", 29)).await.is_err());
    add(&store, record("a", 31)).await.unwrap();
}

#[tokio::test]
async fn k07_ten_thousand_tombstones_and_one_more_are_applied() {
    let ground = Ground::new();
    let store = ground.owner().await;
    for n in 0..100 {
        add(&store, record(&format!("c{n}"), 10)).await.unwrap();
    }
    add(&store, record("stays", 10)).await.unwrap();
    for n in 0..=TOMBSTONES_MAX {
        ground.tombstone(&format!("c{n}"), at(20));
    }
    let applied = store.apply_tombstones().await.unwrap();
    assert_eq!(applied, Applied { applied: TOMBSTONES_MAX + 1, removed: 100, ..Applied::default() });
    assert_eq!(containers(&on_disk(&ground.state_dir).await), ["stays"]);
    assert!(names(&ground.deletes()).is_empty());
    assert_eq!(store.counts().tombstones_applied, 10_001);
}

#[tokio::test]
async fn k07_damaged_tombstones_are_put_aside_and_newer_ones_stay() {
    let ground = Ground::new();
    let store = ground.owner().await;
    add(&store, record("a", 10)).await.unwrap();
    let put = |name: &str, content: &[u8]| std::fs::write(ground.deletes().join(name), content).unwrap();
    put("empty", b"");
    put("junk.00000000000000000001", b"\0\0\0");
    // The content of a's DEL under another's name: neither is believed.
    put("b+eth0.00000000000000000020", &serde_json::to_vec(&tombstone("a", at(20))).unwrap());
    put("newer", br#"{"format":2,"oldestReader":2}"#);
    std::fs::create_dir(ground.deletes().join("dir")).unwrap();
    ground.tombstone("c", at(20));
    let applied = store.apply_tombstones().await.unwrap();
    assert_eq!(applied, Applied { applied: 1, unusable: 5, ..Applied::default() });
    assert_eq!(containers(&store.records()), ["a"]);
    let mut kinds: Vec<Trouble> = store.unusable().iter().map(|unusable| unusable.kind).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [Trouble::Damaged, Trouble::Damaged, Trouble::Damaged, Trouble::Newer, Trouble::Foreign]
    );
    let left = names(&ground.deletes());
    assert!(left.contains(&"newer".to_owned()) && left.contains(&"dir".to_owned()), "{left:?}");
    assert_eq!(left.iter().filter(|name| name.contains(".corrupt-")).count(), 3, "{left:?}");
    // Looked at again, nothing changes.
    assert_eq!(store.apply_tombstones().await.unwrap(), Applied { unusable: 5, ..Applied::default() });
    assert_eq!(names(&ground.deletes()), left);
}

#[tokio::test]
async fn k07_a_tombstone_that_is_still_written_is_not_touched() {
    let ground = Ground::new();
    let store = ground.owner().await;
    std::fs::write(ground.deletes().join(".aether-tmp-0123456789abcdef"), b"{\"format\"").unwrap();
    assert_eq!(store.apply_tombstones().await.unwrap(), Applied::default());
    assert_eq!(names(&ground.deletes()), [".aether-tmp-0123456789abcdef"]);
}

struct Blind;

impl NetnsLook for Blind {
    fn look(&self, _: &str) -> Seen {
        Seen::Unknown { why: "a test".to_owned() }
    }
}

#[tokio::test]
async fn k07_while_the_store_is_kept_a_tombstone_is_applied_within_its_time() {
    let ground = Ground::new();
    let store = ground.owner().await;
    let mut tasks = tokio::task::JoinSet::new();
    let kept = store.clone();
    tasks.spawn(async move { kept.keep(Arc::new(Blind)).await });
    for round in 1..4 {
        add(&store, record("a", round * 10)).await.unwrap();
        let path = ground.tombstone("a", at(round * 10 + 1));
        let written = Instant::now();
        while path.exists() {
            assert!(written.elapsed() < TOMBSTONE_POLL * 10, "it is not applied");
            // pause: of the poll
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(store.records(), []);
    }
}

#[tokio::test]
async fn t05_s03_a_standby_whose_table_is_old_applies_tombstones_to_the_files_and_says_what_the_old_owner_changed()
 {
    let ground = Ground::new();
    let old = ground.owner().await;
    for container in ["kept", "rewritten", "gone"] {
        add(&old, record(container, 10)).await.unwrap();
    }
    let standby = ground.store();
    standby.reload().await.unwrap();
    add(&old, record("rewritten", 11)).await.unwrap();
    del(&old, "gone", 12).await.unwrap();
    add(&old, record("new", 13)).await.unwrap();
    // A record that the standby has never seen, and its DEL, which found no agent.
    add(&old, record("short", 14)).await.unwrap();
    ground.tombstone("short", at(15));
    drop(old);
    assert_eq!(standby.apply_left().await.unwrap(), Applied { applied: 1, removed: 1, ..Applied::default() });
    assert!(
        add(&standby, record("x", 20)).await.is_err(),
        "it serves before its records are what the disk holds"
    );
    assert!(!ground.record_file("short").exists());
    let changes = standby.own().await.unwrap();
    assert_eq!(containers(&changes.added), ["new"]);
    assert_eq!(containers(&changes.removed), ["gone"]);
    assert_eq!(
        changes.updated.iter().map(|one| one.after.key.container.as_str()).collect::<Vec<_>>(),
        ["rewritten"]
    );
    assert_eq!(containers(&standby.records()), ["kept", "new", "rewritten"]);
    add(&standby, record("x", 20)).await.unwrap();
    standby.rest().await;
}
