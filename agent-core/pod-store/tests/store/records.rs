//! What lies in the directory at start (S02, S03, S06).

use aether_domain::clock::BootId;
use aether_domain::pods::{Trouble, Unusable};
use aether_pod_store::{Reloaded, Updated};

use crate::support::{Ground, add, containers, del, names, on_disk, record, record_of};

fn put(ground: &Ground, name: &str, content: &[u8]) {
    std::fs::create_dir_all(ground.pods()).unwrap();
    std::fs::write(ground.pods().join(name), content).unwrap();
}

fn json(record: &aether_domain::record::Record) -> Vec<u8> {
    serde_json::to_vec_pretty(record).unwrap()
}

fn kinds(unusable: &[Unusable]) -> Vec<Trouble> {
    unusable.iter().map(|unusable| unusable.kind).collect()
}

#[tokio::test]
async fn s02_damaged_records_are_quarantined_and_the_others_load() {
    let ground = Ground::new();
    let good = json(&record("good", 10));
    put(&ground, "good+eth0.json", &good);
    put(&ground, "empty+eth0.json", b"");
    put(&ground, "cut+eth0.json", &good[..good.len() / 2]);
    put(&ground, "list+eth0.json", b"[]");
    put(&ground, "nul+eth0.json", &[0; 4096]);
    put(&ground, "misnamed+eth0.json", &json(&record("other", 10)));
    put(&ground, "large+eth0.json", &vec![b' '; aether_domain::limits::STATE_FILE_MAX + 1]);
    let store = ground.owner().await;
    assert_eq!(containers(&store.records()), ["good"]);
    let unusable = store.unusable();
    assert_eq!(kinds(&unusable), [Trouble::Damaged; 6]);
    assert!(unusable.iter().all(|unusable| unusable.file.contains(".corrupt-")), "{unusable:?}");
    assert_eq!(store.counts().quarantined, 6);
    let left = names(&ground.pods());
    assert_eq!(
        left.iter().filter(|name| name.contains("+eth0.json") && !name.contains(".corrupt-")).count(),
        1,
        "{left:?}"
    );
    assert_eq!(left.len(), 7, "none is lost: {left:?}");
    // The next start loads the same, counts none anew, and says what lies there.
    let next = ground.owner().await;
    assert_eq!(containers(&next.records()), ["good"]);
    assert_eq!((next.counts().quarantined, next.unusable().len()), (0, 6));
}

#[tokio::test]
async fn s02_the_newest_ten_quarantined_files_are_kept() {
    let ground = Ground::new();
    for n in 0..25 {
        put(&ground, &format!("c{n:02}+eth0.json"), b"{");
    }
    let store = ground.owner().await;
    assert_eq!(names(&ground.pods()).len(), 10);
    assert_eq!((store.counts().quarantined, store.unusable().len()), (25, 10));
}

#[tokio::test]
async fn s02_a_record_of_a_newer_format_stays_in_place_and_is_counted() {
    let ground = Ground::new();
    let newer = br#"{"format":7,"oldestReader":7,"shape":["unknown"]}"#;
    put(&ground, "newer+eth0.json", newer);
    // Of a newer format that this reader may use: its additions are ignored.
    let mut additive: serde_json::Value = serde_json::to_value(record("additive", 10)).unwrap();
    additive["format"] = 7.into();
    additive["added"] = serde_json::json!({"x": 1});
    put(&ground, "additive+eth0.json", additive.to_string().as_bytes());
    let store = ground.owner().await;
    assert_eq!(containers(&store.records()), ["additive"]);
    assert_eq!(kinds(&store.unusable()), [Trouble::Newer]);
    store.reload().await.unwrap();
    assert_eq!(std::fs::read(ground.pods().join("newer+eth0.json")).unwrap(), newer);
}

#[tokio::test]
async fn s02_what_is_none_of_ours_is_left_alone() {
    let ground = Ground::new();
    put(&ground, "README", b"by hand");
    put(&ground, ".hidden.json", b"by hand");
    std::fs::create_dir(ground.pods().join("dir+eth0.json")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", ground.pods().join("link+eth0.json")).unwrap();
    let store = ground.owner().await;
    assert_eq!(kinds(&store.unusable()), [Trouble::Foreign; 4]);
    assert_eq!(names(&ground.pods()), [".hidden.json", "README", "dir+eth0.json", "link+eth0.json"]);
}

#[tokio::test]
async fn t03_a_standbys_reload_reports_damage_and_touches_nothing() {
    let ground = Ground::new();
    put(&ground, "bad+eth0.json", b"{");
    let mut foreign = record("foreign", 10);
    foreign.started.boot = BootId::new("an-earlier-one");
    put(&ground, "foreign+eth0.json", &json(&foreign));
    let standby = ground.store();
    standby.reload().await.unwrap();
    assert_eq!(standby.records(), []);
    assert_eq!(kinds(&standby.unusable()), [Trouble::Damaged]);
    assert_eq!(names(&ground.pods()), ["bad+eth0.json", "foreign+eth0.json"]);
    assert!(!ground.deletes().exists());
}

#[tokio::test]
async fn t03_t05_what_is_read_ahead_is_known_at_the_takeover_and_whatever_changed_since_is_read() {
    let ground = Ground::new();
    let owner = ground.owner().await;
    for container in ["a", "b", "c"] {
        add(&owner, record(container, 10)).await.unwrap();
    }
    let standby = ground.store();
    standby.read_ahead().await;
    assert_eq!(standby.count(), 3);
    // As old as they look: nothing of them is read again.
    // pause: until files count as settled
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    standby.read_ahead().await;
    let before = names(&ground.pods());
    add(&owner, record("b", 20)).await.unwrap();
    add(&owner, record("d", 20)).await.unwrap();
    del(&owner, "c", 20).await.unwrap();
    let found = standby.enable().await.unwrap().reloaded;
    assert_eq!(containers(&found.added), ["d"]);
    assert_eq!(found.updated.len(), 1);
    assert_eq!(containers(&found.removed), ["c"]);
    assert_ne!(names(&ground.pods()), before);
    // An owner reads nothing ahead: what it knows is ahead of nobody.
    standby.read_ahead().await;
    let next = ground.store();
    next.read_ahead().await;
    assert_eq!(next.enable().await.unwrap().reloaded, Reloaded::default(), "nothing changed since");
}

#[tokio::test]
async fn s03_reload_says_what_was_added_updated_and_removed() {
    let ground = Ground::new();
    let owner = ground.owner().await;
    for container in ["a", "b", "c"] {
        add(&owner, record(container, 10)).await.unwrap();
    }
    let standby = ground.store();
    let first = standby.reload().await.unwrap();
    assert_eq!(containers(&first.added), ["a", "b", "c"]);
    assert!(first.updated.is_empty() && first.removed.is_empty());
    add(&owner, record("b", 20)).await.unwrap();
    add(&owner, record("d", 20)).await.unwrap();
    crate::support::del(&owner, "c", 20).await.unwrap();
    let second = standby.reload().await.unwrap();
    assert_eq!(second.added, [record("d", 20)]);
    assert_eq!(second.updated, [Updated { before: record("b", 10), after: record("b", 20) }]);
    assert_eq!(second.removed, [record("c", 10)]);
    assert_eq!(standby.reload().await.unwrap(), Reloaded::default());
    // The owner looks too, when somebody worked on its files by hand.
    std::fs::remove_file(ground.record_file("a")).unwrap();
    assert_eq!(owner.reload().await.unwrap().removed, [record("a", 10)]);
}

#[tokio::test]
async fn s06_records_of_another_boot_are_dropped_at_load() {
    let ground = Ground::new();
    let mut foreign = record("foreign", 10);
    foreign.started.boot = BootId::new("an-earlier-one");
    put(&ground, "foreign+eth0.json", &json(&foreign));
    put(&ground, "ours+eth0.json", &json(&record("ours", 10)));
    let store = ground.owner().await;
    assert_eq!(containers(&store.records()), ["ours"]);
    assert_eq!(names(&ground.pods()), ["ours+eth0.json"]);
    assert_eq!(store.counts().other_boot, 1);
}

#[tokio::test]
async fn k05_two_sandboxes_of_one_pod_left_by_a_kill_are_settled_at_start() {
    let ground = Ground::new();
    put(&ground, "old+eth0.json", &json(&record_of("old", "web", 10)));
    put(&ground, "new+eth0.json", &json(&record_of("new", "web", 20)));
    let store = ground.owner().await;
    assert_eq!(store.records(), [record_of("new", "web", 20)]);
    assert_eq!(names(&ground.pods()), ["new+eth0.json"]);
}

#[tokio::test]
async fn s01_unfinished_files_of_killed_writers_are_removed() {
    let ground = Ground::new();
    put(&ground, ".aether-tmp-0011223344556677", b"half a rec");
    std::fs::create_dir_all(ground.deletes()).unwrap();
    let fresh = ground.deletes().join(".aether-tmp-fresh");
    let old = ground.deletes().join(".aether-tmp-old");
    let future = ground.deletes().join(".aether-tmp-future");
    for (path, shift) in [(&fresh, 0), (&old, -61), (&future, 3600)] {
        let file = std::fs::File::create(path).unwrap();
        let now = std::time::SystemTime::now();
        let by = std::time::Duration::from_secs(i64::unsigned_abs(shift));
        file.set_modified(if shift < 0 { now - by } else { now + by }).unwrap();
    }
    let store = ground.owner().await;
    assert!(names(&ground.pods()).is_empty());
    // A plugin may be writing the fresh one right now.
    assert_eq!(names(&ground.deletes()), [".aether-tmp-fresh"]);
    assert_eq!(store.unusable(), []);
}

#[tokio::test]
async fn s01_an_add_survives_that_somebody_removes_the_folder() {
    let ground = Ground::new();
    let store = ground.owner().await;
    std::fs::remove_dir_all(&ground.state_dir).unwrap();
    add(&store, record("a", 10)).await.unwrap();
    assert_eq!(on_disk(&ground.state_dir).await, [record("a", 10)]);
}

#[tokio::test]
async fn o04_folders_that_others_can_look_into_are_closed() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let ground = Ground::new();
    std::fs::create_dir_all(ground.pods()).unwrap();
    for folder in [ground.state_dir.clone(), ground.pods()] {
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    ground.owner().await;
    for folder in [ground.state_dir.clone(), ground.pods(), ground.deletes()] {
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700, "{}", folder.display());
    }
}

#[tokio::test]
async fn s02_a_folder_that_is_none_is_a_clear_error() {
    let ground = Ground::new();
    std::fs::create_dir_all(&ground.state_dir).unwrap();
    std::fs::write(ground.pods(), b"a file").unwrap();
    let error = ground.store().enable().await.unwrap_err();
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("pods") && text.contains("directory"), "{text}");
}
