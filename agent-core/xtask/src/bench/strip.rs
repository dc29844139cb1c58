//! `cargo xtask bench strip`: P8.

use anyhow::Result;
use clap::Parser;

use crate::run;

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many strips by each kind of writer.
    #[arg(long, default_value_t = 100)]
    strips: u32,
}

pub(super) fn run(args: &Args) -> Result<()> {
    super::node()?;
    run::check(super::program("bench-strip").arg("--strips").arg(args.strips.to_string()))
}
