//! `cargo xtask bench modules`: P9.

use anyhow::Result;
use clap::Parser;

use crate::{prerequisites, run};

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many calls of each kind.
    #[arg(long, default_value_t = 5000)]
    calls: usize,
    /// How many swaps of a version under load.
    #[arg(long, default_value_t = 300)]
    swaps: usize,
}

pub(super) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    // It compiles its modules itself, and so the compiler is built into it: some minutes once.
    let mut bench = super::program_with("bench-modules", &["modules"]);
    bench.arg("--calls").arg(args.calls.to_string()).arg("--swaps").arg(args.swaps.to_string());
    run::check(&mut bench)
}
