//! The program against agents that answer, and against everything else that may be found at the path.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A directory of one agent.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("health.sock")
    }

    fn probe(&self, arguments: &[&str]) -> Ended {
        let mut probe = Command::new(env!("CARGO_BIN_EXE_agent-ready"));
        probe.arg("--local-dir").arg(self.0.path()).args(arguments);
        run(probe)
    }

    /// Serves one connection, and gives back what was asked.
    fn serve(&self, work: impl FnOnce(&mut UnixStream) + Send + 'static) -> JoinHandle<String> {
        let listener = UnixListener::bind(self.socket()).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let asked = head(&mut stream);
            work(&mut stream);
            asked
        })
    }

    fn serve_text(&self, text: &'static str) -> JoinHandle<String> {
        self.serve(move |stream| stream.write_all(text.as_bytes()).unwrap())
    }
}

/// How a probe ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
    took: Duration,
}

impl Ended {
    /// Nobody answered: exit code 2, one line that names the socket, the words, and nothing on standard output.
    fn is_no_answer(&self, words: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self:?}");
        assert!(self.stderr.contains(words) && self.stderr.contains("health.sock"), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
    }

    /// Far above the limit of 100 ms that the tests give, and far below the default.
    fn is_in_time(&self) {
        assert!(self.took >= Duration::from_millis(100) && self.took < Duration::from_secs(10), "{self:?}");
    }
}

fn run(mut command: Command) -> Ended {
    let begin = Instant::now();
    let output = command.env_remove("AETHER_LOCAL_DIR").output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        took: begin.elapsed(),
    }
}

/// Reads a request to the end of its head.
fn head(stream: &mut UnixStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// Waits for the other side to go.
fn until_gone(stream: &mut UnixStream) {
    while !matches!(stream.read(&mut [0; 256]), Ok(0) | Err(_)) {}
}

const READY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nready\n";

#[test]
fn b01_b02_ready_is_exit_code_0() {
    let place = Place::new();
    let agent = place.serve_text(READY);
    let ended = place.probe(&[]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "ready\n", ""));
    let asked = agent.join().unwrap();
    assert!(asked.starts_with("GET /readyz HTTP/1.1\r\n") && asked.contains("\r\nHost: "), "{asked}");
}

#[test]
fn b02_not_ready_is_exit_code_1_with_the_gates_that_are_missing() {
    let place = Place::new();
    let agent = place.serve_text(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 24\r\n\r\nnot ready: store, chain\n",
    );
    let ended = place.probe(&[]);
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (1, "not ready: store, chain\n", "")
    );
    agent.join().unwrap();
}

#[test]
fn b02_live_is_another_question() {
    let place = Place::new();
    let agent = place.serve_text("HTTP/1.1 503 x\r\n\r\n");
    let ended = place.probe(&["--live"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.starts_with("not alive"), "{ended:?}");
    assert!(agent.join().unwrap().starts_with("GET /livez "));
}

#[test]
fn b02_two_agents_of_a_node_answer_each_its_own_probe() {
    let (old, new) = (Place::new(), Place::new());
    let old_agent = old.serve_text("HTTP/1.1 503 x\r\nContent-Length: 16\r\n\r\nnot ready: node\n");
    let new_agent = new.serve_text(READY);
    assert_eq!(new.probe(&[]).code, 0);
    let ended = old.probe(&[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "not ready: node\n"));
    old_agent.join().unwrap();
    new_agent.join().unwrap();
    // With one of them gone nobody answers for it.
    old.probe(&[]).is_no_answer("nobody listens there");
}

#[test]
fn b02_the_directory_is_taken_from_the_agents_own_variable() {
    let place = Place::new();
    let agent = place.serve_text(READY);
    let mut probe = Command::new(env!("CARGO_BIN_EXE_agent-ready"));
    let output = probe.env("AETHER_LOCAL_DIR", place.0.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    agent.join().unwrap();
}

#[test]
fn b01_an_answer_in_pieces_is_an_answer() {
    let place = Place::new();
    let agent = place.serve(|stream| {
        for byte in "HTTP/1.1 503 x\r\nContent-Length: 8\r\n\r\nnot yet\n".bytes() {
            stream.write_all(&[byte]).unwrap();
            // pause: so that the pieces arrive one by one
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let ended = place.probe(&[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "not yet\n"));
    agent.join().unwrap();
}

#[test]
fn b01_an_endless_body_is_cut() {
    for (status, code) in [("200 OK", 0), ("503 x", 1)] {
        let place = Place::new();
        let agent = place.serve(move |stream| {
            stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
            while stream.write_all(&[b'a'; 4096]).is_ok() {}
        });
        let ended = place.probe(&[]);
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stdout.len() <= 4097, "{} bytes", ended.stdout.len());
        agent.join().unwrap();
    }
}

#[test]
fn b01_a_refusal_whose_body_does_not_end_is_a_refusal() {
    let place = Place::new();
    let agent = place.serve(|stream| {
        stream.write_all(b"HTTP/1.1 503 x\r\nContent-Length: 100\r\n\r\nnot ready: store\n").unwrap();
        until_gone(stream);
    });
    let ended = place.probe(&["--timeout-ms", "100"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "not ready: store\n"));
    ended.is_in_time();
    agent.join().unwrap();
}

#[test]
fn b01_an_agent_that_never_answers_is_given_up() {
    for text in ["", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nx: y\r\n"] {
        let place = Place::new();
        let agent = place.serve(move |stream| {
            stream.write_all(text.as_bytes()).unwrap();
            until_gone(stream);
        });
        let ended = place.probe(&["--timeout-ms", "100"]);
        ended.is_no_answer("within 100 ms");
        ended.is_in_time();
        agent.join().unwrap();
    }
}

#[test]
fn b01_an_agent_that_drips_for_ever_is_given_up() {
    let place = Place::new();
    let agent = place.serve(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        while stream.write_all(b"x").is_ok() {
            // pause: each byte comes well within the limit, the whole never does
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    let ended = place.probe(&["--timeout-ms", "100"]);
    ended.is_no_answer("within 100 ms");
    ended.is_in_time();
    agent.join().unwrap();
}

#[test]
fn b01_what_is_no_answer_is_told_apart() {
    for (text, words) in [
        ("", "closed without an answer"),
        ("HTTP/1.1 200 OK\r\n", "cut off after 17 bytes"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"),
        ("HTTP/1.1 404 Not Found\r\n\r\n", "status 404"),
        ("HTTP/1.1 2oo OK\r\n\r\n", "not HTTP"),
    ] {
        let place = Place::new();
        let agent = place.serve_text(text);
        place.probe(&[]).is_no_answer(words);
        agent.join().unwrap();
    }
}

#[test]
fn b01_headers_without_end_are_cut() {
    let place = Place::new();
    let agent = place.serve(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap();
        while stream.write_all(&[b'a'; 1024]).is_ok() {}
    });
    place.probe(&[]).is_no_answer("longer than 4096 bytes");
    agent.join().unwrap();
}

#[test]
fn b01_what_lies_at_the_path_is_told() {
    let place = Place::new();
    place.probe(&[]).is_no_answer("cannot connect: No such file or directory");

    drop(UnixListener::bind(place.socket()).unwrap());
    place.probe(&[]).is_no_answer("nobody listens there: Connection refused");

    std::fs::remove_file(place.socket()).unwrap();
    std::fs::create_dir(place.socket()).unwrap();
    place.probe(&[]).is_no_answer("what is there is no socket");

    let long = "a".repeat(200);
    place.probe(&["--socket", &format!("/{long}/health.sock")]).is_no_answer("cannot connect");
}

/// `connect` waits while the queue is full; with the standard library alone nothing bounds it but a thread.
#[test]
fn b01_a_full_queue_is_given_up() {
    let place = Place::new();
    let _listener = UnixListener::bind(place.socket()).unwrap();
    let _queue = fill(&place.socket());
    let ended = place.probe(&["--timeout-ms", "100"]);
    ended.is_no_answer("the connection is not taken");
    ended.is_in_time();
}

/// Connects until one more would wait: from a thread, since it would wait for ever.
fn fill(socket: &Path) -> Vec<UnixStream> {
    let mut queue = Vec::new();
    loop {
        let (sender, receiver) = std::sync::mpsc::channel();
        let path = socket.to_owned();
        std::thread::spawn(move || sender.send(UnixStream::connect(path)));
        match receiver.recv_timeout(Duration::from_secs(2)) {
            Ok(Ok(stream)) => queue.push(stream),
            Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => return queue,
            Ok(Err(error)) => panic!("the queue cannot be filled: {error}"),
            Err(_) => return queue,
        }
    }
}

#[test]
fn b01_a_wrong_command_line_is_no_answer() {
    let mut probe = Command::new(env!("CARGO_BIN_EXE_agent-ready"));
    probe.args(["--timeout-ms", "never"]);
    let ended = run(probe);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--timeout-ms is never") && ended.stderr.contains("--help"), "{ended:?}");
    let mut probe = Command::new(env!("CARGO_BIN_EXE_agent-ready"));
    probe.arg("--help");
    let ended = run(probe);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("AETHER_LOCAL_DIR, /tmp/aether"), "{ended:?}");
}
