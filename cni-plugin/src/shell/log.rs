//! The one line on standard error that each call leaves (K14).

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::config::LogLevel;
use crate::environment::{Command, Environment};
use crate::failure::Failure;
use crate::pod;
use crate::shell::run::Outcome;

/// How long a full standard error is waited for, before the line is given up.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The longest line, in bytes: within `PIPE_BUF`, so that a pipe takes it whole or says that it cannot.
const LINE_MAX: usize = 4096;
/// The longest value of a line that comes from outside, in characters.
const VALUE_MAX: usize = 512;

/// What the line tells.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Whether it is wanted.
    pub(super) level: LogLevel,
    /// The request id.
    pub(super) id: &'a str,
    /// The command.
    pub(super) command: Command,
    /// The key and the pod's name are in it.
    pub(super) environment: &'a Environment,
    /// The agent's socket.
    pub(super) socket: &'a Path,
    /// How long it took.
    pub(super) elapsed: Duration,
    /// How it ended.
    pub(super) ended: &'a Result<Outcome, Failure>,
}

/// Writes the line of `call`.
pub(super) fn call(call: &Call<'_>) {
    let worth = !matches!(call.ended, Ok(Outcome { reason: None, .. }));
    if call.level == LogLevel::Info || worth {
        line(&render(call));
    }
}

fn render(call: &Call<'_>) -> String {
    let mut text = format!("aether-cni: request={} command={}", call.id, call.command.name());
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = write!(text, " {name}={}", shown(value));
        }
    };
    let environment = call.environment;
    let lossy =
        |value: &Option<_>| value.as_deref().map(OsStr::to_string_lossy).unwrap_or_default().into_owned();
    field("container", &lossy(&environment.container));
    field("ifname", &lossy(&environment.interface));
    let args = lossy(&environment.args);
    let argument =
        |name| pod::arguments(&args).filter(|(key, _)| *key == name).last().map_or("", |(_, value)| value);
    match (argument("K8S_POD_NAMESPACE"), argument("K8S_POD_NAME")) {
        ("", name) => field("pod", name),
        (namespace, name) => field("pod", &format!("{namespace}/{name}")),
    }
    field("agent", &call.socket.to_string_lossy());
    match call.ended {
        Ok(outcome) => {
            field("outcome", outcome.word);
            field("reason", outcome.reason.as_deref().unwrap_or_default());
        }
        Err(failure) => {
            field("outcome", &format!("error-{}", failure.code));
            field("reason", &failure.to_string());
        }
    }
    field("ms", &call.elapsed.as_millis().to_string());
    text
}

/// The value in one word, or quoted and escaped, so that nothing from outside can make a line of its own.
fn shown(value: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() && c != '"' && c != '=' && c != '\\';
    let cut: String = value.chars().take(VALUE_MAX).collect();
    if cut.chars().all(plain) { cut } else { format!("{cut:?}") }
}

/// Writes one line to standard error. Nothing depends on it: a closed one is passed over, and a full one, whose reader
/// does not read, is not waited for.
pub(super) fn line(text: &str) {
    let mut end = text.len().min(LINE_MAX - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let line = format!("{}\n", text.get(..end).unwrap_or_default());
    let mut polled = [PollFd::from_borrowed_fd(rustix::stdio::stderr(), PollFlags::OUT)];
    if rustix::event::poll(&mut polled, Some(&WAIT)).is_ok_and(|ready| ready > 0) {
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k14_the_line_names_request_pod_agent_outcome_and_time() {
        let environment = Environment {
            command: Some("ADD".into()),
            container: Some("abc".into()),
            interface: Some("eth0".into()),
            netns: None,
            args: Some("IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0\nforged=1".into()),
        };
        let ended = Ok(Outcome { document: None, word: "recorded", reason: None });
        let text = render(&Call {
            level: LogLevel::Info,
            id: "00ff",
            command: Command::Add,
            environment: &environment,
            socket: Path::new("/run/aether/cni.sock"),
            elapsed: Duration::from_millis(3),
            ended: &ended,
        });
        assert_eq!(
            text,
            "aether-cni: request=00ff command=ADD container=abc ifname=eth0 pod=\"prod/web-0\\nforged=1\" \
             agent=/run/aether/cni.sock outcome=recorded ms=3"
        );
    }
}
