//! `aether-agent`: owns the node, or stands by until it does.
//!
//! `args` become a configuration; `run` builds the parts, joins them by `ports`, and holds the order of start and end.
//! Every task is one of `tasks`. What the parts share is in `node`.

mod admin;
mod args;
mod foreign;
mod lock;
mod metrics_http;
mod node;
mod ports;
mod run;
mod tasks;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use aether_telemetry::logs;
use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Args, exit};
use crate::run::Ended;

/// How long work on the disk that a cancelled call left behind is waited for.
const RUNTIME_END: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    match start(Args::parse()) {
        Ok(Ended::Stopped) => ExitCode::from(exit::STOPPED),
        Ok(Ended::LockReplaced) => ExitCode::from(exit::LOCK_REPLACED),
        Err(error) => {
            // Logs may not have been set up yet; with standard error closed there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "aether-agent: {error:#}");
            ExitCode::from(exit::FAILED)
        }
    }
}

fn start(args: Args) -> anyhow::Result<Ended> {
    let (config, look) = args.into_parts();
    let level = logs::init(look.format, &look.level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("agent")
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(run::run(config, level));
    runtime.shutdown_timeout(RUNTIME_END);
    ended
}
