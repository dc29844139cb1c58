//! `cargo xtask bench strip`: P8.

use anyhow::Result;
use clap::Parser;

use super::Beside;
use crate::run;

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many strips by each kind of writer.
    #[arg(long, default_value_t = 100)]
    strips: u32,
    /// Also with Istio's install-cni, which is built first: some minutes once.
    #[arg(long)]
    peers: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let beside = Beside::asked(args.peers);
    super::node(beside)?;
    let mut bench = super::program("bench-strip");
    bench.arg("--strips").arg(args.strips.to_string());
    beside.tell(&mut bench);
    run::check(&mut bench)
}
