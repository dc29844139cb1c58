//! `aether-agent`: owns the node, or stands by until it does.
//!
//! `args` become a configuration; `run` builds the parts, joins them by `ports`, and holds the order of start and end.
//! Every task is one of `tasks`. What the parts share is in `node`.

mod admin;
mod admission;
mod args;
mod foreign;
mod lock;
mod metrics_http;
mod modules;
mod node;
mod ports;
mod run;
mod tasks;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use aether_telemetry::logs::{self, Level};
use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Args, Config, exit};
use crate::run::Ended;

/// How long work on the disk that a cancelled call left behind is waited for.
pub(crate) const RUNTIME_END: Duration = Duration::from_secs(1);

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

fn start(config: Config, level: Level) -> anyhow::Result<Ended> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("agent")
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(run::run(config, level));
    runtime.shutdown_timeout(RUNTIME_END);
    ended
}
