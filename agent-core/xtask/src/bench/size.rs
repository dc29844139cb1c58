//! `cargo xtask bench size`: P10.

use anyhow::Result;
use clap::Parser;

use crate::{build, prerequisites, run};

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many pods the agent knows.
    #[arg(long, default_value_t = 110)]
    pods: usize,
    /// For how many seconds it is watched while it idles.
    #[arg(long, default_value_t = 60)]
    idle: u32,
}

pub(super) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    build::binaries(build::Build::Ship)?;
    let mut bench = super::program("bench-size");
    bench.arg("--pods").arg(args.pods.to_string()).arg("--idle").arg(args.idle.to_string());
    run::check(&mut bench)
}
