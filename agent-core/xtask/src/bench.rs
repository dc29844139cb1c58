//! Measurements: `aether-benches` does them, this builds what they need. One file a bench.

mod plugin;
mod probes;
mod strip;

use std::process::Command;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{build, prerequisites, run, tools};

/// What `bench` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

/// A measurement.
#[derive(Debug, Subcommand)]
enum What {
    /// P6 and P7: what the plugin costs a pod, and its size, beside portmap.
    Plugin(plugin::Args),
    /// P11: how large the probe is, and what an exec of it costs.
    Probes(probes::Args),
    /// P8: how long our entry is away when somebody strips it.
    Strip(strip::Args),
}

/// Builds, measures, and leaves JSON under target/bench/.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::Plugin(args) => plugin::run(args),
        What::Probes(args) => probes::run(args),
        What::Strip(args) => strip::run(args),
    }
}

/// Builds the pinned tools and what a node runs, as it ships.
fn node() -> Result<()> {
    prerequisites::ensure()?;
    tools::build_all()?;
    build::binaries(build::Build::Ship)
}

/// The program of `aether-benches` of this name: built with optimisation, and shown where the shipped binaries are. What is
/// added goes to the program.
fn program(name: &str) -> Command {
    let mut cargo = run::cargo();
    cargo.env("AETHER_BIN_DIR", build::Build::Ship.directory());
    cargo.args(["run", "--quiet", "--release", "--package", "aether-benches", "--bin", name, "--"]);
    cargo
}
