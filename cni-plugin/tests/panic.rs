//! A fault of the plugin is one document and an exit code (K02). Without a test harness, whose output would be in the
//! way: the program runs itself, and the one inside panics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a helper fails its test by panicking"
)]

use std::process::{Command, Output};
use std::sync::Arc;

use aether_cni::environment;
use aether_cni::shell;

const CHILD: &str = "AETHER_TEST_PANICS_AS";

fn main() {
    match std::env::var(CHILD).as_deref() {
        Ok("ADD") => panics(environment::Command::Add),
        Ok("DEL") => panics(environment::Command::Del),
        Ok("late") => panics_after_printing(),
        Ok("thread") => panics_in_a_thread(),
        _ => {
            k02_a_panic_is_one_document_of_its_own_code();
            k02_a_panic_of_another_thread_is_no_other();
            k02_a_panic_after_the_document_prints_no_second();
            k07_a_panic_of_del_lets_the_pod_go();
            println!("panic: 4 tests passed");
        }
    }
}

fn prepared(command: environment::Command) -> Arc<shell::Output> {
    let output = Arc::new(shell::Output::default());
    shell::answer_panics(&output);
    output.serve(command);
    output
}

fn panics(command: environment::Command) {
    let _output = prepared(command);
    panic!("a \"fault\"\nof two lines");
}

fn panics_after_printing() {
    let output = prepared(environment::Command::Add);
    output.print("{}").unwrap();
    panic!("late");
}

fn panics_in_a_thread() {
    let _output = prepared(environment::Command::Check);
    let _ = std::thread::spawn(|| panic!("elsewhere")).join();
    // The process has ended by now.
    println!("not reached");
}

fn run(how: &str) -> (Output, String) {
    let output = Command::new(std::env::current_exe().unwrap()).env(CHILD, how).output().unwrap();
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    (output, stderr)
}

fn k02_a_panic_is_one_document_of_its_own_code() {
    let (output, stderr) = run("ADD");
    assert_eq!(output.status.code(), Some(1));
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((error["code"].as_u64(), error["cniVersion"].as_str()), (Some(103), Some("1.1.0")));
    assert!(error["details"].as_str().unwrap().contains("a \"fault\" of two lines"), "{error}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("outcome=panic") && stderr.contains("panic.rs"), "{stderr}");
}

fn k02_a_panic_of_another_thread_is_no_other() {
    let (output, _) = run("thread");
    assert_eq!(output.status.code(), Some(1));
    let error: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(error["details"].as_str().unwrap().contains("elsewhere"), "{error}");
}

fn k02_a_panic_after_the_document_prints_no_second() {
    let (output, stderr) = run("late");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b"{}"[..]));
    assert!(stderr.contains("late"), "{stderr}");
}

fn k07_a_panic_of_del_lets_the_pod_go() {
    let (output, stderr) = run("DEL");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(stderr.contains("outcome=panic"), "{stderr}");
}
