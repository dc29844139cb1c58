//! Waiting for a list.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aether_durable::lock::Lock;

use crate::support::{Child, DEADLINE, FLANNEL, LIST, Node};

/// A waiting installer and its log lines.
struct Waiting {
    child: Child,
    lines: Receiver<String>,
}

impl Waiting {
    fn start(node: &Node, args: &[&str]) -> Self {
        let mut child = Child(node.command(args).stderr(Stdio::piped()).spawn().unwrap());
        let err = BufReader::new(child.0.stderr.take().unwrap());
        let (send, lines) = channel();
        // Ends with the child's standard error.
        std::thread::spawn(move || err.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// The next line that says `word`.
    #[track_caller]
    fn line(&self, word: &str) -> String {
        let mut seen = Vec::new();
        let start = Instant::now();
        while let Ok(line) = self.lines.recv_timeout(DEADLINE.saturating_sub(start.elapsed())) {
            if line.contains(word) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line says {word:?}: {seen:#?}");
    }

    #[track_caller]
    fn succeeds(&mut self) -> Duration {
        let start = Instant::now();
        let status = self.child.0.wait().unwrap();
        assert!(status.success(), "{status}: {:#?}", self.lines.iter().collect::<Vec<_>>());
        start.elapsed()
    }
}

/// Removes a directory into which the installer may be writing just now.
#[track_caller]
fn remove(directory: &Path) {
    crate::support::until("the directory's removal", || std::fs::remove_dir_all(directory).is_ok());
}

/// F5: an empty directory is said, with a hint that the place may be wrong.
#[test]
fn i05_f5_it_waits_says_where_and_takes_the_list_as_soon_as_it_is_right() {
    let node = Node::empty();
    let mut run = Waiting::start(&node, &[]);
    let line = run.line("waiting");
    assert!(line.contains(&*node.conf().to_string_lossy()) && line.contains("--cni-conf-dir"), "{line}");
    node.put(LIST, &FLANNEL[..40]);
    let line = run.line(LIST);
    assert!(line.contains("left alone"), "{line}");
    node.put(LIST, FLANNEL);
    // Written in place and closed: an event. Ten times the interval of the poll is the bound.
    assert!(run.succeeds() < Duration::from_secs(10));
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i05_while_it_waits_binary_and_wanted_state_are_there_and_the_lock_is_free() {
    let node = Node::empty();
    let mut run = Waiting::start(&node, &[]);
    run.line("waiting");
    assert!(node.plugin().exists() && node.wanted().exists());
    // A poll takes it for moments, so one try may fail.
    let lock = node.state().join("edit.lock");
    let mut taken = None;
    crate::support::until("the lock is free", || {
        taken = Lock::try_take(&lock).unwrap();
        taken.is_some()
    });
    drop(taken);
    let temp = node.conf().join("x.tmp");
    std::fs::write(&temp, FLANNEL).unwrap();
    std::fs::rename(&temp, node.list()).unwrap();
    run.succeeds();
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i05_a_directory_that_appears_later_is_taken_too_and_nothing_is_begun_before() {
    let node = Node::empty();
    std::fs::remove_dir(node.conf()).unwrap();
    let mut run = Waiting::start(&node, &[]);
    let line = run.line("waiting");
    assert!(line.contains("does not exist") && line.contains("--profile"), "{line}");
    assert!(!node.plugin().exists() && !node.state().exists());
    std::fs::create_dir(node.conf()).unwrap();
    run.line("holds no file");
    remove(&node.conf());
    run.line("does not exist");
    std::fs::create_dir(node.conf()).unwrap();
    node.put(LIST, FLANNEL);
    run.succeeds();
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i05_directories_that_go_while_they_are_written_to_are_waited_for_again() {
    let node = Node::empty();
    let mut run = Waiting::start(&node, &[]);
    run.line("waiting");
    let anew = |directory: &Path| {
        remove(directory);
        std::fs::create_dir(directory).unwrap();
    };
    for directory in [node.conf(), node.bin()].into_iter().cycle().take(8) {
        anew(&directory);
        node.put("a change to look at", "");
        // Its temporary file: it is at the write.
        let written = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.is_ok_and(|e| e.file_name() != "a change to look at")
        };
        let start = Instant::now();
        while !std::fs::read_dir(&directory).unwrap().any(written) {
            let said = || run.lines.try_iter().collect::<Vec<_>>();
            assert!(
                start.elapsed() < DEADLINE,
                "nothing is written to {}: {:#?}",
                directory.display(),
                said()
            );
            std::hint::spin_loop();
        }
        anew(&directory);
    }
    node.put(LIST, FLANNEL);
    run.succeeds();
    assert_eq!(node.ours(LIST).len(), 1);
    assert!(node.plugin().exists() && node.wanted().exists());
}

#[test]
fn i05_the_expected_file_is_waited_for_while_another_comes_first() {
    let node = Node::empty();
    node.put("05-other.conflist", FLANNEL);
    let mut run = Waiting::start(&node, &["--conf-name", LIST]);
    run.line("--conf-name expects");
    node.put(LIST, FLANNEL);
    std::fs::remove_file(node.conf().join("05-other.conflist")).unwrap();
    run.succeeds();
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i05_no_wait_ends_with_a_code_and_the_same_message() {
    let node = Node::empty();
    let run = Waiting::start(&node, &[]);
    let waited = run.line("waiting");
    let said = node.install().ends(3);
    let reason = waited.split_once("s): ").unwrap().1;
    assert!(said.err.contains(reason), "{reason:?} is not in {said:#?}");
}

#[test]
fn i05_a_missing_directory_of_plugins_is_waited_for() {
    let node = Node::flannel();
    std::fs::remove_dir(node.bin()).unwrap();
    let before = node.get(LIST);
    node.install().ends(3).says(&["does not exist", "--cni-bin-dir"]);
    assert_eq!(node.get(LIST), before);
    let mut run = Waiting::start(&node, &[]);
    run.line("waiting");
    std::fs::create_dir(node.bin()).unwrap();
    run.succeeds();
    assert_eq!(node.ours(LIST).len(), 1);
}

#[test]
fn i05_i07_what_turns_out_to_be_impossible_ends_the_wait() {
    let node = Node::empty();
    let mut run = Waiting::start(&node, &[]);
    run.line("waiting");
    let temp = node.conf().join("x.tmp");
    std::fs::write(&temp, r#"{"name":"m","type":"multus"}"#).unwrap();
    std::fs::rename(&temp, node.conf().join("10-b.conf")).unwrap();
    assert_eq!(run.child.0.wait().unwrap().code(), Some(4));
    run.line("Multus");
}

/// As a container's first process it would be deaf to SIGTERM unless it listened.
#[test]
fn i05_sigterm_ends_the_wait_also_for_the_first_process_of_a_container() {
    let node = Node::empty();
    let mut command = std::process::Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", crate::support::PROGRAM]).args(node.args()).env_clear();
    let mut child = Child(
        command.stderr(Stdio::piped()).spawn().expect("this test needs unshare: apt-get install util-linux"),
    );
    let mut err = BufReader::new(child.0.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "it ended before it waited");
    }
    let unshare = child.0.id();
    let first = std::fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
    let first = rustix::process::Pid::from_raw(first.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(first, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.0.wait().unwrap().code(), Some(3));
    line.clear();
    err.read_line(&mut line).unwrap();
    assert!(line.contains("ended by a signal"), "{line}");
}
