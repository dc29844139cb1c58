//! What a person at the terminal sees: lines, and steps with their times.

use std::io::Write as _;
use std::time::Instant;

/// How wide a step's name is.
const WIDTH: usize = 64;

/// Prints a line.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a title.
pub(crate) fn title(text: &str) {
    line(&format!("\n{text}\n{}", "-".repeat(text.chars().count())));
}

/// Runs a step: its name is shown when it begins, its time when it ends.
pub(crate) async fn step<T>(name: &str, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut out = std::io::stdout();
    let _ = write!(out, "  {name:<WIDTH$}");
    let _ = out.flush();
    let begin = Instant::now();
    let result = work.await;
    let time = begin.elapsed().as_secs_f64();
    line(&match &result {
        Ok(_) => format!("{time:>7.2} s"),
        Err(_) => format!("{time:>7.2} s  FAILED"),
    });
    result
}
