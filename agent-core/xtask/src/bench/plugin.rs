//! `cargo xtask bench plugin`: P6 and P7.

use anyhow::Result;
use clap::Parser;

use super::Beside;
use crate::run;

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many pairs of pods are started with and without the plugin.
    #[arg(long, default_value_t = 100)]
    pairs: u32,
    /// How many execs of each plugin.
    #[arg(long, default_value_t = 500)]
    execs: u32,
    /// Also beside Cilium's and Istio's plugins, which are built first: some minutes once.
    #[arg(long)]
    peers: bool,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let beside = Beside::asked(args.peers);
    super::node(beside)?;
    let mut bench = super::program("bench-plugin");
    bench.arg("--pairs").arg(args.pairs.to_string()).arg("--execs").arg(args.execs.to_string());
    beside.tell(&mut bench);
    run::check(&mut bench)
}
