//! A state directory that is full, or read-only (S01, K10).
//!
//! The test runs itself again in a mount namespace of its own, so that its file system goes with it whatever happens.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use aether_domain::pods::{AddError, Deleted, PodService as _, ServiceError, Trouble};

use crate::support::{Here, add, at, containers, del, key, names, record, store_at, tombstone};

const INSIDE: &str = "AETHER_TEST_INSIDE";

/// Runs `inside` with an empty file system of 1 MiB at the path it is given.
fn on_a_small_disk(name: &str, inside: fn(&Path)) {
    if let Some(directory) = std::env::var_os(INSIDE) {
        mount(&["-t", "tmpfs", "-o", "size=1m,mode=0700", "none"], Path::new(&directory));
        return inside(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, directory.path())
        .output()
        .expect("cannot run unshare; install the package util-linux");
    assert!(
        output.status.success(),
        "run as root (a mount namespace is needed):\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(names(directory.path()).is_empty(), "the file system was not the child's alone");
}

fn mount(arguments: &[&str], directory: &Path) {
    let status = Command::new("mount").args(arguments).arg(directory).status().unwrap();
    assert!(status.success(), "cannot mount {arguments:?}; run as root");
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[test]
fn s01_k10_on_a_full_disk_an_add_fails_clearly_a_del_succeeds_and_status_says_so() {
    on_a_small_disk(
        "disk::s01_k10_on_a_full_disk_an_add_fails_clearly_a_del_succeeds_and_status_says_so",
        |state_dir| {
            block_on(async {
                let store = store_at(state_dir, Arc::new(()), Arc::new(()));
                store.enable().await.unwrap();
                add(&store, record("a", 10)).await.unwrap();
                add(&store, record("b", 10)).await.unwrap();
                store.status().await.unwrap();
                let filler = state_dir.join("filler");
                let written = std::fs::write(&filler, vec![b'x'; 2 << 20]);
                assert_eq!(written.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
                let error = add(&store, record("c", 10)).await.unwrap_err();
                assert!(matches!(error, AddError::Storage { .. }), "{error:?}");
                let text = with_causes(&error);
                for part in ["c/eth0", "pods", "No space left", "free"] {
                    assert!(text.contains(part), "{part:?} is missing: {text}");
                }
                // One that stands already is not lost by its failed replacement.
                assert!(add(&store, record("b", 20)).await.is_err());
                assert_eq!(names(&state_dir.join("pods")), ["a+eth0.json", "b+eth0.json"]);
                assert_eq!(store.records(), [record("a", 10), record("b", 10)]);
                let error = with_causes(&store.status().await.unwrap_err());
                assert!(error.contains("No space left"), "{error}");
                assert_eq!(del(&store, "a", 20).await.unwrap(), Deleted::Removed(Box::new(record("a", 10))));
                std::fs::remove_file(&filler).unwrap();
                store.status().await.unwrap();
                add(&store, record("c", 10)).await.unwrap();
                assert_eq!(containers(&store.records()), ["b", "c"]);
            });
        },
    );
}

#[test]
fn s01_s02_a_read_only_disk_loads_serves_what_it_can_and_says_why_not() {
    on_a_small_disk(
        "disk::s01_s02_a_read_only_disk_loads_serves_what_it_can_and_says_why_not",
        |state_dir| {
            block_on(async {
                let store = store_at(state_dir, Arc::new(()), Arc::new(()));
                store.enable().await.unwrap();
                add(&store, record("a", 10)).await.unwrap();
                let pods = state_dir.join("pods");
                std::fs::write(pods.join("bad+eth0.json"), b"{").unwrap();
                let left = tombstone("a", at(20));
                let left_path = state_dir.join("deletes").join(left.file_name());
                std::fs::write(&left_path, serde_json::to_vec(&left).unwrap()).unwrap();
                drop(store);
                mount(&["-o", "remount,ro"], state_dir);
                let store = store_at(state_dir, Arc::new(()), Arc::new(()));
                store.enable().await.unwrap();
                assert_eq!(containers(&store.records()), ["a"]);
                assert_eq!(store.unusable().first().map(|unusable| unusable.kind), Some(Trouble::Damaged));
                let error = with_causes(&store.add(record("b", 30), Arc::new(Here)).await.unwrap_err());
                assert!(error.contains("Read-only file system") && error.contains("b/eth0"), "{error}");
                assert!(matches!(del(&store, "a", 30).await, Err(ServiceError::Storage { .. })));
                let error = with_causes(&store.status().await.unwrap_err());
                assert!(error.contains("Read-only file system"), "{error}");
                assert!(store.apply_tombstones().await.is_err());
                mount(&["-o", "remount,rw"], state_dir);
                // What failed is tried again, and nothing was lost.
                store.apply_tombstones().await.unwrap();
                assert_eq!(store.records(), []);
                assert!(!left_path.exists() && !pods.join(key("a").file_stem() + ".json").exists());
            });
        },
    );
}
