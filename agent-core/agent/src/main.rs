//! `aether-agent`: owns the node, or stands by until it does.
//!
//! `args` become a configuration; `run` builds the parts and joins them by `ports`; `takeover` is the agent's life on the
//! node. Every task is one of `tasks`, or a job of `takeover`. What the parts share is in `node`.

mod admin;
mod admission;
mod args;
mod health;
mod metrics_http;
mod modules;
mod node;
mod ports;
mod run;
mod takeover;
mod tasks;

use std::io::Write as _;
use std::process::ExitCode;

use aether_telemetry::logs::{self, Level};
use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Args, Config, exit};
use crate::run::Ended;

fn main() -> ExitCode {
    let (config, look) = Args::parse().into_parts();
    let level = match logs::init(look.format, &look.level) {
        Ok(level) => level,
        Err(error) => {
            // There are no logs to say it in; with standard error closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "aether-agent: {:#}", anyhow::Error::new(error));
            return ExitCode::from(exit::FAILED);
        }
    };
    ExitCode::from(match start(config, level) {
        Ok(Ended::Stopped) => exit::STOPPED,
        Ok(Ended::LockReplaced) => exit::LOCK_REPLACED,
        Ok(Ended::Failed) => exit::FAILED,
        Err(error) => {
            tracing::error!("cannot start: {error:#}");
            exit::FAILED
        }
    })
}

/// The most threads that serve calls: a node's calls are few, and its processors may be many.
const WORKERS_MAX: usize = 4;

fn start(config: Config, level: Level) -> anyhow::Result<Ended> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(processors.min(WORKERS_MAX))
        .enable_all()
        .thread_name("agent")
        .build()
        .context("cannot start the runtime")?;
    // On this thread, and no worker: what is done to it alone is done to the agent's loop, and to no call.
    let ended = runtime.block_on(run::run(config, level));
    // Nothing is waited for, not even for the workers: a successor may be waiting for the lock, which goes with the process
    // where it has not gone before (T07).
    std::mem::forget(runtime);
    ended
}
