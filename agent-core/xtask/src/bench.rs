//! Measurements: `aether-benches` does them, this builds what they need. One file a bench.

mod modules;
mod plugin;
mod probes;
mod roll;
mod size;
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
    /// P9: what modules cost: a call, a fresh instance, a takeover, a version swapped under load.
    Modules(modules::Args),
    /// P6 and P7: what the plugin costs a pod, and its size, beside portmap.
    Plugin(plugin::Args),
    /// P11: how large the probe is, and what an exec of it costs.
    Probes(probes::Args),
    /// P5: calls under rolls, and the gap of the CNI socket.
    Roll(roll::Args),
    /// P10: what the agent weighs, and the compiler of modules beside it.
    Size(size::Args),
    /// P8: how long our entry is away when somebody strips it.
    Strip(strip::Args),
}

/// Builds, measures, and leaves JSON under target/bench/.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::Modules(args) => modules::run(args),
        What::Plugin(args) => plugin::run(args),
        What::Probes(args) => probes::run(args),
        What::Roll(args) => roll::run(args),
        What::Size(args) => size::run(args),
        What::Strip(args) => strip::run(args),
    }
}

/// What a measurement runs beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// What the tests have anyway.
    Tests,
    /// The large programs of others too.
    Peers,
}

impl Beside {
    fn asked(peers: bool) -> Self {
        if peers { Self::Peers } else { Self::Tests }
    }

    /// Tells the bench of it.
    fn tell(self, bench: &mut Command) {
        if self == Self::Peers {
            bench.arg("--peers");
        }
    }
}

/// Builds the pinned tools and what a node runs, as it ships.
fn node(beside: Beside) -> Result<()> {
    prerequisites::ensure()?;
    tools::build_all()?;
    if beside == Beside::Peers {
        tools::build_for(tools::For::Peers)?;
    }
    build::binaries(build::Build::Ship)
}

/// The program of `aether-benches` of this name: built with optimisation, and shown where the shipped binaries are. What is
/// added goes to the program.
fn program(name: &str) -> Command {
    program_with(name, &[])
}

/// The same with features of `aether-benches`.
fn program_with(name: &str, features: &[&str]) -> Command {
    let mut cargo = run::cargo();
    cargo.env("AETHER_BIN_DIR", build::Build::Ship.directory());
    cargo.args(["run", "--release", "--package", "aether-benches"]);
    cargo.args(["--features", &features.join(","), "--bin", name, "--"]);
    cargo
}
