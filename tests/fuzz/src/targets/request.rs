//! The plugin's call: the variables in the first line, separated by tabs, and standard input behind it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use aether_cni::config::{Incomplete, Input};
use aether_cni::environment::{Command, Environment};
use aether_cni::failure::Failure;
use aether_cni::invocation::{Action, Invocation, Marker};
use aether_cni::{reply, version};
use serde_json::Value;

/// The variables, in the order of the first line.
pub(crate) const VARIABLES: [&str; 5] =
    ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"];

pub(crate) fn run(bytes: &[u8]) {
    let (line, stdin) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default()),
        None => (bytes, &[][..]),
    };
    let environment = environment(line);
    if let Err(failure) = environment.command() {
        document(version::NEWEST, &failure);
    }
    let whole = Input { bytes: stdin.to_vec(), problem: None };
    let cut = Input { problem: Some(Incomplete::TimedOut(Duration::from_secs(1))), ..whole.clone() };
    // Each command whatever the variable says: the engine need not find out all six.
    for command in Command::ALL {
        let environment = Environment { command: Some(command.name().into()), ..environment.clone() };
        for input in [&whole, &cut] {
            match Invocation::read(command, &environment, input) {
                Err((of, failure)) => refused(command, &environment, of, &failure),
                Ok(invocation) => read(command, invocation, input),
            }
        }
    }
}

fn environment(line: &[u8]) -> Environment {
    let values: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    Environment::read(|name| {
        let index = VARIABLES.iter().position(|variable| *variable == name)?;
        // A variable holds no zero byte.
        let value: Vec<u8> = values.get(index)?.iter().copied().filter(|byte| *byte != 0).collect();
        Some(OsString::from_vec(value))
    })
}

fn refused(command: Command, environment: &Environment, of: &str, failure: &Failure) {
    document(of, failure);
    if command == Command::Del {
        assert!(environment.key().is_err(), "a DEL fails by its standard input (K07): {failure}");
        let text = failure.to_string().to_lowercase();
        assert!(!text.contains("not found"), "containerd swallows this error of a DEL (K07): {text}");
    }
    assert!(command != Command::Version || failure.code != 1, "VERSION fails by a version (K01)");
}

/// A failure is one document in a version that we know (K02).
fn document(of: &str, failure: &Failure) {
    assert!(version::SUPPORTED.contains(&of), "{of} is no version");
    let text = reply::error(of, failure);
    let value: Value = serde_json::from_str(&text).expect("an error is one JSON document (K02)");
    assert_eq!(value.get("cniVersion").and_then(Value::as_str), Some(of));
    assert_eq!(value.get("code").and_then(Value::as_u64), Some(u64::from(failure.code)));
}

fn read(command: Command, invocation: Invocation<'_>, input: &Input) {
    assert!(version::SUPPORTED.contains(&invocation.version));
    let of = invocation.version;
    match &invocation.action {
        Action::Add { prev, request, .. } => {
            assert!(input.problem.is_none(), "an ADD goes on with half of its standard input");
            result(prev, &input.bytes);
            let pod = request.pod.as_ref().expect("a pod");
            for address in &pod.addresses {
                let ip = address.split('/').next().unwrap_or_default();
                assert!(ip.parse::<std::net::IpAddr>().is_ok(), "{address:?} is no address");
            }
            assert!(pod.host_ports.iter().all(|port| (1..=65535).contains(&port.host_port)));
        }
        Action::Del { key, .. } => assert!(!key.file_stem().contains(['/', '.'])),
        Action::Gc(_) | Action::Check { .. } | Action::Status | Action::Version => {}
    }
    if let Err(failure) = invocation.resolve(Marker::Absent) {
        assert_ne!(command, Command::Del, "a DEL fails by its entry (K07): {failure}");
        document(of, &failure);
    }
}

/// `prevResult` leaves as the bytes it came in (K03), and means what Go's decoder sees: of keys that stand twice the last.
fn result(prev: &str, stdin: &[u8]) {
    let within = stdin.as_ptr_range();
    let (begin, end) = (prev.as_ptr(), prev.as_bytes().as_ptr_range().end);
    assert!(within.start <= begin && end <= within.end, "prevResult is a copy");
    if let (Ok(whole), Ok(prev)) =
        (serde_json::from_slice::<Value>(stdin), serde_json::from_str::<Value>(prev))
    {
        assert_eq!(whole.get("prevResult"), Some(&prev));
    }
}
