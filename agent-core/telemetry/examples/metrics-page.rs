//! Prints `agent-core/docs/metrics.md`.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    print!("{}", aether_telemetry::page::markdown());
}
