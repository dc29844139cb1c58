//! Killed, and failed by the kernel, at every step of what it does to the disk (S01).
//!
//! The test runs itself again as a child under `strace`, which kills it or fails a system call at the N-th of a kind, for
//! every N there is. The child does the same list of operations each time and says which were acknowledged.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use aether_domain::pods::{PodService as _, Trouble};
use aether_pod_store::Store;

use crate::support::{Ground, Here, at, del, key, record_of, store_at, tombstone};

const VICTIM: &str = "AETHER_TEST_VICTIM";
const OPERATIONS: usize = 8;
/// The failure of what the child does in a plugin's place.
const PLUGIN: &str = "the tombstone was not written";
/// More calls of one kind than the child makes.
const STEPS_MAX: usize = 400;

/// One operation. An error is said with its causes.
async fn operate(store: &Store, state_dir: &Path, operation: usize) -> Result<(), String> {
    let chain = |error: &dyn std::error::Error| {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    };
    let add = async |record| store.add(record, Arc::new(Here)).await.map(drop).map_err(|error| chain(&error));
    match operation {
        0 => store.enable().await.map(drop).map_err(|error| chain(&error)),
        1 => add(record_of("a", "web", 10)).await,
        2 => add(record_of("b", "db", 10)).await,
        // Replaces a.
        3 => add(record_of("c", "web", 20)).await,
        // The runtime's DEL of what was replaced; where that could not be removed it is now.
        4 => del(store, "a", 25).await.map(drop).map_err(|error| chain(&error)),
        // Written anew in its place.
        5 => add(record_of("b", "db", 30)).await,
        6 => del(store, "b", 40).await.map(drop).map_err(|error| chain(&error)),
        7 => {
            let tombstone = tombstone("c", at(50));
            let path = state_dir.join("deletes").join(tombstone.file_name());
            let whole = path.with_file_name(".aether-tmp-plugin");
            let bytes = serde_json::to_vec(&tombstone).unwrap();
            std::fs::write(&whole, bytes)
                .and_then(|()| std::fs::rename(&whole, &path))
                .map_err(|_| PLUGIN.to_owned())?;
            store.apply_tombstones().await.map(drop).map_err(|error| chain(&error))
        }
        _ => unreachable!(),
    }
}

/// The sandboxes, with their ADDs' starts, that are recorded after so many operations.
fn after(operations: usize) -> BTreeSet<(&'static str, u64)> {
    match operations {
        0 | 1 | OPERATIONS => BTreeSet::new(),
        2 => BTreeSet::from([("a", 10)]),
        3 => BTreeSet::from([("a", 10), ("b", 10)]),
        4 | 5 => BTreeSet::from([("b", 10), ("c", 20)]),
        6 => BTreeSet::from([("b", 30), ("c", 20)]),
        7 => BTreeSet::from([("c", 20)]),
        _ => unreachable!(),
    }
}

/// The child: does everything, retries what fails once, and says so line by line.
fn victim(state_dir: &Path) {
    // One thread for all work on the disk: strace counts the calls of each thread by itself.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let store = store_at(state_dir, Arc::new(()), Arc::new(()));
        for operation in 0..OPERATIONS {
            let file = |container: &str| state_dir.join("pods").join(key(container).file_stem() + ".json");
            let before = ["a", "b", "c"].map(|container| std::fs::read(file(container)).ok());
            if let Err(error) = operate(&store, state_dir, operation).await {
                println!("FAILED {operation} {error}");
                let now = ["a", "b", "c"].map(|container| std::fs::read(file(container)).ok());
                if matches!(operation, 1 | 2 | 3 | 5) && now != before {
                    println!("HALF {operation}");
                }
                if let Err(error) = operate(&store, state_dir, operation).await {
                    println!("STUCK {operation} {error}");
                }
            }
            println!("DONE {operation}");
        }
    });
}

/// What a run under `strace` left.
struct Ran {
    killed: bool,
    injected: bool,
    lines: Vec<String>,
}

/// Runs the test `name` as the victim, with an injection.
fn run(name: &str, state_dir: &Path, syscalls: &str, injection: &str, step: usize) -> Ran {
    let log = state_dir.with_extension("strace");
    let output = Command::new("strace")
        // Not with --seccomp-bpf, which is faster: strace 6.1 then forgets signals that are due after the first call.
        .args(["-f", "-o"])
        .arg(&log)
        .args([
            "-e",
            &format!("trace={syscalls}"),
            "-e",
            &format!("inject={syscalls}:{injection}:when={step}"),
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(VICTIM, state_dir)
        .output()
        .expect("cannot run strace; install the package strace");
    let lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    let traced = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log).unwrap();
    // strace ends itself by the signal that ended its child.
    let killed = std::os::unix::process::ExitStatusExt::signal(&output.status) == Some(9);
    assert!(killed || output.status.success(), "{syscalls} {step}: {output:?}");
    Ran { killed, injected: traced.contains("INJECTED"), lines }
}

/// What the next owner finds and serves. Nothing may be torn.
fn next_owner(state_dir: &Path) -> BTreeSet<(String, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = store_at(state_dir, Arc::new(()), Arc::new(()));
        store.enable().await.unwrap();
        let torn: Vec<_> =
            store.unusable().into_iter().filter(|unusable| unusable.kind == Trouble::Damaged).collect();
        assert_eq!(torn, []);
        store
            .records()
            .iter()
            .map(|record| (record.key.container.to_string(), record.started.nanos))
            .collect()
    })
}

fn is(found: &BTreeSet<(String, u64)>, expected: &BTreeSet<(&'static str, u64)>) -> bool {
    found.iter().map(|(container, started)| (container.as_str(), *started)).eq(expected.iter().copied())
}

fn done(lines: &[String]) -> usize {
    // libtest's own line ends without a newline before ours.
    lines.iter().filter(|line| line.contains("DONE ")).count()
}

#[test]
fn s01_killed_at_every_step_nothing_is_torn_and_what_was_acknowledged_is_there() {
    if let Some(state_dir) = std::env::var_os(VICTIM) {
        return victim(Path::new(&state_dir));
    }
    let name = "crash::s01_killed_at_every_step_nothing_is_torn_and_what_was_acknowledged_is_there";
    for syscalls in ["fsync", "rename,renameat,renameat2", "unlinkat", "write", "mkdir,fchmod"] {
        let mut step = 1;
        loop {
            assert!(step < STEPS_MAX, "{syscalls}: the injection never ends");
            let ground = Ground::new();
            let ran = run(name, &ground.state_dir, syscalls, "signal=KILL", step);
            let done = done(&ran.lines);
            let found = next_owner(&ground.state_dir);
            if !ran.killed {
                assert_eq!(done, OPERATIONS, "{:?}", ran.lines);
                assert!(is(&found, &after(OPERATIONS)), "{found:?}");
                break;
            }
            let fits = is(&found, &after(done)) || is(&found, &after((done + 1).min(OPERATIONS)));
            assert!(
                fits,
                "killed at {syscalls} {step} after {done} operations, the next owner finds {found:?}"
            );
            step += 1;
        }
        assert!(step > 3, "{syscalls}: only {step} steps; does strace still see the child's calls?");
    }
}

#[test]
fn s01_failed_at_every_step_an_add_leaves_nothing_half_and_its_retry_succeeds() {
    if let Some(state_dir) = std::env::var_os(VICTIM) {
        return victim(Path::new(&state_dir));
    }
    let name = "crash::s01_failed_at_every_step_an_add_leaves_nothing_half_and_its_retry_succeeds";
    // Only calls that are made on our files: a failed write to standard output ends the child.
    for (syscalls, error, text) in [
        ("fsync", "error=EIO", "Input/output error"),
        ("rename,renameat,renameat2", "error=ENOSPC", "No space left"),
        ("unlinkat", "error=EIO", "Input/output error"),
        ("fchmod", "error=EROFS", "Read-only file system"),
    ] {
        let mut step = 1;
        let mut failed = 0;
        loop {
            assert!(step < STEPS_MAX, "{syscalls}: the injection never ends");
            let ground = Ground::new();
            let ran = run(name, &ground.state_dir, syscalls, error, step);
            let said = |what: &str| ran.lines.iter().filter(|line| line.contains(what)).count();
            assert_eq!((said("HALF "), said("STUCK ")), (0, 0), "{syscalls} {step}: {:?}", ran.lines);
            assert_eq!(done(&ran.lines), OPERATIONS, "{syscalls} {step}: {:?}", ran.lines);
            let found = next_owner(&ground.state_dir);
            assert!(is(&found, &after(OPERATIONS)), "{syscalls} {step}: {found:?}");
            let place = ground.state_dir.parent().unwrap().to_string_lossy().into_owned();
            for line in ran.lines.iter().filter(|line| line.contains("FAILED ") && !line.contains(PLUGIN)) {
                assert!(line.contains(text) && line.contains(&place), "not what, where and why: {line}");
                failed += 1;
            }
            if !ran.injected {
                break;
            }
            step += 1;
        }
        assert!(failed > 2, "{syscalls}: {failed} failures in {step} steps");
    }
}
