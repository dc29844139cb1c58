//! The exit code and the text of an answer: the kubelet shows both in the pod's events.

use std::error::Error as _;
use std::fmt::Write as _;

use crate::args::{HEALTH_SOCKET, LOCAL_DIR, LOCAL_DIR_VARIABLE, Question, Request, TIMEOUT, UsageError};
use crate::ask::{AskError, Place};
use crate::http::Answer;

/// Ready, or alive.
pub const YES: u8 = 0;
/// The agent says that it is not.
pub const NO: u8 = 1;
/// Nobody answered, or not as an agent does.
pub const NO_ANSWER: u8 = 2;

/// How the probe ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code.
    pub code: u8,
    /// What goes to standard output.
    pub stdout: String,
    /// What goes to standard error.
    pub stderr: String,
}

impl Outcome {
    /// How the request ends.
    pub fn of(request: &Request, answer: Result<Answer, AskError>) -> Self {
        match answer {
            Ok(Answer::Yes) => Self::said(YES, format!("{}\n", yes(request.question))),
            Ok(Answer::No(body)) => Self::said(NO, shown(&body, request.question)),
            Err(error) => Self::failed(&told(request, &error)),
        }
    }

    /// The command line cannot be obeyed.
    pub fn misused(error: &UsageError) -> Self {
        Self::failed(&format!("{error}: see agent-ready --help"))
    }

    /// The help was asked for.
    pub fn help() -> Self {
        let text = format!(
            "Asks the agent on its own socket whether it is ready, and ends within a time limit.

agent-ready [--live] [--local-dir DIR | --socket PATH] [--timeout-ms N]

  --live           ask whether it works (/livez), not whether it is ready (/readyz)
  --local-dir DIR  the agent's own directory, which holds {HEALTH_SOCKET} [{LOCAL_DIR_VARIABLE}, {LOCAL_DIR}]
  --socket PATH    the socket itself
  --timeout-ms N   the time limit of the whole [{}]

Exit code: 0 yes; 1 no, and the agent's reason is printed; 2 nobody answered as an agent does.
",
            TIMEOUT.as_millis()
        );
        Self::said(YES, text)
    }

    fn said(code: u8, stdout: String) -> Self {
        Self { code, stdout, stderr: String::new() }
    }

    fn failed(message: &str) -> Self {
        Self { code: NO_ANSWER, stdout: String::new(), stderr: format!("agent-ready: {message}\n") }
    }
}

fn yes(question: Question) -> &'static str {
    match question {
        Question::Ready => "ready",
        Question::Live => "alive",
    }
}

/// The agent's text as lines of text.
fn shown(body: &[u8], question: Question) -> String {
    let text = String::from_utf8_lossy(body);
    let mut text: String = text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect();
    if text.trim().is_empty() {
        text = format!("not {}: the agent says nothing more", yes(question));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// What was tried, on what, why it failed, what to do.
fn told(request: &Request, error: &AskError) -> String {
    let mut text = format!("GET {} on {}: {error}", request.question.path(), request.socket.display());
    if let Some(source) = error.source() {
        let _ = write!(text, ": {source}");
    }
    if matches!(error, AskError::Late { .. } | AskError::NotTaken) {
        let _ = write!(text, " within {} ms", request.timeout.as_millis());
    }
    text.push_str(match error {
        AskError::Connect { place: Place::Other, .. } | AskError::Strange(_) => {
            "; --local-dir or --socket names another program's place: give the agent's own"
        }
        AskError::Connect { .. } => {
            "; the agent has not started or has ended (see its log), or its --local-dir is another"
        }
        AskError::NotTaken | AskError::Late { .. } => {
            "; the agent is stopped or overloaded: see its log and its CPU limit"
        }
        AskError::Broken(_) | AskError::Closed { .. } => {
            "; the agent has ended while it was asked: see its log"
        }
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request { question: Question::Ready, socket: "/s".into(), timeout: TIMEOUT }
    }

    #[test]
    fn b02_a_refusal_says_which_gate_is_missing() {
        let outcome = Outcome::of(&request(), Ok(Answer::No(b"not ready: store, chain\n".to_vec())));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (NO, "not ready: store, chain\n"));
        assert_eq!(outcome.stderr, "");
    }

    #[test]
    fn what_the_agent_says_is_printed_as_text() {
        let shown = |body: &[u8]| shown(body, Question::Ready);
        assert_eq!(shown(b"a\x1b[31m\0b\r\nc"), "a?[31m?b?\nc\n");
        assert_eq!(shown(b"caf\xE9"), "caf\u{fffd}\n");
        assert_eq!(shown(b" \n"), "not ready: the agent says nothing more\n");
    }

    #[test]
    fn every_failure_says_what_was_tried_and_what_to_do() {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        for error in [
            AskError::Connect { place: Place::Nothing, source: refused() },
            AskError::Connect { place: Place::Socket, source: refused() },
            AskError::Connect { place: Place::Other, source: refused() },
            AskError::NotTaken,
            AskError::Broken(refused()),
            AskError::Closed { came: 0 },
            AskError::Late { came: 3 },
            AskError::Strange(crate::http::Strange::NotHttp),
        ] {
            let outcome = Outcome::of(&request(), Err(error));
            assert_eq!((outcome.code, outcome.stdout.as_str()), (NO_ANSWER, ""));
            assert!(outcome.stderr.starts_with("agent-ready: GET /readyz on /s: "), "{}", outcome.stderr);
            assert!(outcome.stderr.contains("; "), "{}", outcome.stderr);
            assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        }
    }
}
