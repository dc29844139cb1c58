//! `cargo xtask bench plugin`: P6 and P7.

use anyhow::Result;
use clap::Parser;

use crate::run;

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many pairs of pods are started with and without the plugin.
    #[arg(long, default_value_t = 100)]
    pairs: u32,
}

pub(super) fn run(args: &Args) -> Result<()> {
    super::node()?;
    run::check(super::program("bench-plugin").arg("--pairs").arg(args.pairs.to_string()))
}
