//! `aetherctl`: what a person asks of a node's agent, over its pod-local admin socket.

mod ask;
mod cli;
mod policy;
mod render;
mod table;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Args, exit};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::Error::new(error).context("cannot start the runtime")),
    };
    match runtime.block_on(cli::run(&args)) {
        Ok((text, code)) => {
            // A reader that has seen enough (`| head`) is no failure.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::from(code)
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    // With standard error closed there is nobody left to tell; the exit code does.
    let _ = writeln!(std::io::stderr(), "aetherctl: {error:#}");
    ExitCode::from(exit::FAILED)
}
