//! The socket's path (T08, T13, O04).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as its body does")]

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aether_durable::socket::{Answers, BindError, adopt, ask, bind, identity};

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn o04_the_socket_is_roots_alone_and_nothing_is_left_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cni.sock");
    let _listener = bind(&path).unwrap();
    let metadata = path.symlink_metadata().unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!((metadata.mode() & 0o7777, metadata.uid()), (0o600, 0));
    assert_eq!(names(dir.path()), ["cni.sock"]);
    UnixStream::connect(&path).unwrap();
}

#[test]
fn t08_a_dead_socket_is_replaced_and_the_path_is_never_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cni.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(UnixStream::connect(&path).is_err(), "it is dead");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut looks = 0;
            while !stop.load(Ordering::Relaxed) {
                assert!(path.symlink_metadata().is_ok(), "the path names nothing");
                looks += 1;
            }
            looks
        });
        let mut listeners = Vec::new();
        for _ in 0..200 {
            listeners.push(bind(&path).unwrap());
        }
        stop.store(true, Ordering::Relaxed);
        assert!(looks.join().unwrap() > 0);
    });
    assert_eq!(names(dir.path()), ["cni.sock"]);
}

#[test]
fn o04_what_is_no_socket_is_never_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cni.sock");
    let refused = |what: &str| {
        let error = bind(&path).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, BindError::InTheWay { .. }), "{error:?}");
        assert!(text.contains(what) && text.contains("cni.sock") && text.contains("remove"), "{text}");
        assert_eq!(names(dir.path()), ["cni.sock"], "nothing is left beside it");
    };
    std::fs::create_dir(&path).unwrap();
    refused("directory");
    std::fs::remove_dir(&path).unwrap();
    std::fs::write(&path, b"precious").unwrap();
    refused("regular file");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/nowhere", &path).unwrap();
    refused("symbolic link");
    assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("/nowhere"));
}

#[test]
fn o04_a_missing_directory_and_a_long_path_are_clear_errors() {
    let dir = tempfile::tempdir().unwrap();
    let error = bind(&dir.path().join("none/cni.sock")).unwrap_err();
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("none/cni.sock") && text.contains("No such file"), "{text}");
    let long = dir.path().join("d".repeat(100)).join("cni.sock");
    assert!(matches!(bind(&long), Err(BindError::TooLong { .. })));
}

#[test]
fn t08_sockets_under_a_killed_owners_temporary_name_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(dir.path().join(".aether-tmp-deadbeef")).unwrap());
    std::fs::write(dir.path().join(".aether-tmp-file"), b"another's").unwrap();
    let _listener = bind(&dir.path().join("cni.sock")).unwrap();
    assert_eq!(names(dir.path()), [".aether-tmp-file", "cni.sock"]);
}

#[test]
fn t13_a_bound_path_is_told_from_what_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cni.sock");
    assert_eq!(identity(&path), None);
    let first = bind(&path).unwrap();
    assert_eq!(identity(&path), Some(first.identity));
    let second = bind(&path).unwrap();
    assert_ne!(first.identity, second.identity);
    assert_eq!(identity(&path), Some(second.identity));
}

#[test]
fn t06_t08_somebody_answers_while_any_duplicate_is_open_and_an_adopted_one_names_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cni.sock");
    assert_eq!(ask(&path), Answers::Nobody);
    std::fs::create_dir(&path).unwrap();
    assert_eq!(ask(&path), Answers::Nobody);
    std::fs::remove_dir(&path).unwrap();
    let bound = bind(&path).unwrap();
    let duplicate = std::os::fd::OwnedFd::from(bound.listener.try_clone().unwrap());
    drop(bound);
    let listener = adopt(duplicate).unwrap();
    assert_eq!(ask(&path), Answers::Somebody { pid: Some(std::process::id()) });
    // The one that asked is in its queue.
    drop(listener.accept().unwrap());
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    drop(listener);
    assert_eq!(ask(&path), Answers::Nobody);
}
