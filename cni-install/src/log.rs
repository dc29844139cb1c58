//! Log lines on standard error, one a message. A closed standard error is no reason to stop half-way.

use std::error::Error;
use std::fmt::Display;
use std::io::Write as _;

/// Says one line.
pub fn line(message: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "aether-cni-install: {message}");
}

/// An error with its causes, each said once.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// Says one line on standard output: an answer, not a log line.
pub fn out(message: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{message}");
}
