//! `cargo xtask bench roll`: P5.

use anyhow::Result;
use clap::Parser;

use crate::run;

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many rolls under each kind of load.
    #[arg(long, default_value_t = 20)]
    rolls: u32,
    /// How many rolls of an idle node, for the gap of the CNI socket.
    #[arg(long, default_value_t = 100)]
    gaps: u32,
}

pub(super) fn run(args: &Args) -> Result<()> {
    super::node(super::Beside::Tests)?;
    let mut bench = super::program("bench-roll");
    bench.arg("--rolls").arg(args.rolls.to_string()).arg("--gaps").arg(args.gaps.to_string());
    run::check(&mut bench)
}
