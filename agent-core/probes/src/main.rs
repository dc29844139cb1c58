//! `agent-ready`, the agent's exec probe.

use std::io::Write as _;
use std::process::ExitCode;

use aether_probes::args::{self, LOCAL_DIR_VARIABLE, Wish};
use aether_probes::ask;
use aether_probes::outcome::Outcome;

fn main() -> ExitCode {
    let outcome = match args::parse(std::env::args_os().skip(1), std::env::var_os(LOCAL_DIR_VARIABLE)) {
        Ok(Wish::Help) => Outcome::help(),
        Ok(Wish::Ask(request)) => Outcome::of(&request, ask::ask(&request)),
        Err(error) => Outcome::misused(&error),
    };
    // With nobody left to read it, the exit code still says it all.
    let _ = std::io::stdout().write_all(outcome.stdout.as_bytes());
    let _ = std::io::stderr().write_all(outcome.stderr.as_bytes());
    ExitCode::from(outcome.code)
}
