//! `crash`: kills at random moments on a node under load (P16).

use anyhow::Result;
use clap::Parser;

use crate::{build, prerequisites, run, tools};

/// What `crash` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many kills.
    #[arg(long, default_value_t = 1000)]
    rounds: u32,
    /// What the moments are drawn from, as an earlier run printed it; a new one without it.
    #[arg(long)]
    seed: Option<String>,
}

/// Builds, kills, audits.
pub(crate) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    tools::build_all()?;
    build::binaries(build::Build::Quick)?;
    let mut cargo = run::cargo();
    cargo.args(["run", "--quiet", "--package", "aether-test-node", "--bin", "aether-crash", "--"]);
    cargo.arg("--rounds").arg(args.rounds.to_string());
    if let Some(seed) = &args.seed {
        cargo.arg("--seed").arg(seed);
    }
    run::check(&mut cargo)
}
