//! Measurements: `aether-benches` does them, this builds what it needs.

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::{build, prerequisites, run, tools};

/// What `bench` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Which measurement.
    what: What,
    /// How many pairs of pods are started with and without the plugin.
    #[arg(long, default_value_t = 100)]
    pairs: u32,
    /// How many strips by each kind of writer.
    #[arg(long, default_value_t = 100)]
    strips: u32,
}

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// P6 and P7: what the plugin costs a pod, and its size, beside portmap.
    Plugin,
    /// P8: how long our entry is away when somebody strips it.
    Strip,
}

/// Builds, measures, and leaves JSON under target/bench/.
pub(crate) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    tools::build_all()?;
    build::binaries(build::Build::Ship)?;
    let mut cargo = run::cargo();
    cargo.env("AETHER_BIN_DIR", build::Build::Ship.directory());
    cargo.args(["run", "--quiet", "--release", "--package", "aether-benches", "--bin"]);
    match args.what {
        What::Plugin => cargo.args(["bench-plugin", "--", "--pairs"]).arg(args.pairs.to_string()),
        What::Strip => cargo.args(["bench-strip", "--", "--strips"]).arg(args.strips.to_string()),
    };
    run::check(&mut cargo)
}
