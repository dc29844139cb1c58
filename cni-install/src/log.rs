//! Log lines on standard error, one a message. A closed standard error is no reason to stop half-way.

use std::fmt::Display;
use std::io::Write as _;

/// Says one line.
pub fn line(message: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "aether-cni-install: {message}");
}

/// Says one line on standard output: an answer, not a log line.
pub fn out(message: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{message}");
}
