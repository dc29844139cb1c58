//! The program where nothing answers.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its body does")]

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};

fn aetherctl(socket: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aetherctl"));
    command.arg("--admin-socket").arg(socket).args(arguments).output().unwrap()
}

fn refused(output: &Output, socket: &Path, remedy: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(output.stdout.is_empty());
    assert!(text.contains(&*socket.to_string_lossy()) && text.contains(remedy), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn o03_when_nothing_answers_the_socket_and_the_remedy_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("admin.sock");
    for command in ["pods", "chain", "log-level"] {
        refused(&aetherctl(&socket, &[command]), &socket, "there is no such socket");
    }
    drop(UnixListener::bind(&socket).unwrap());
    refused(&aetherctl(&socket, &["pods", "-o", "json"]), &socket, "has ended");
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "a file").unwrap();
    refused(&aetherctl(&socket, &["chain"]), &socket, "no agent answers on");
}

#[test]
fn o03_wrong_arguments_are_told_from_a_missing_agent() {
    let dir = tempfile::tempdir().unwrap();
    let output = aetherctl(&dir.path().join("x"), &["pods", "-o", "yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("json"));
}
