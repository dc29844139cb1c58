//! `up`, `roll`, `down` and `shell`: one node with a real containerd, by the harness's `aether-node`.

use std::process::Command;

use anyhow::Result;
use clap::Parser;

use crate::{build, prerequisites, run, tools};

/// What `up` takes.
#[derive(Debug, Parser)]
pub(crate) struct Up {
    /// Which containerd: 1 is Debian's, 2 is built from the Go module proxy.
    #[arg(long, default_value = "2", value_parser = ["1", "2"])]
    containerd: String,
}

/// Installs, builds, and starts the node.
pub(crate) fn up(args: &Up) -> Result<()> {
    prerequisites::ensure()?;
    tools::build_all()?;
    build::binaries(build::Build::Quick)?;
    run::check(aether_node("up").arg("--containerd").arg(&args.containerd))
}

/// Rolls the node to a new agent, which is built first.
pub(crate) fn roll() -> Result<()> {
    build::binaries(build::Build::Quick)?;
    run::check(&mut aether_node("roll"))
}

/// Removes the node.
pub(crate) fn down() -> Result<()> {
    let binary = run::target("bin").join("aether-node");
    if !binary.exists() {
        println!("no node: nothing was ever built here (`cargo xtask up` does)");
        return Ok(());
    }
    run::check(&mut aether_node("down"))
}

/// Runs a command, or a shell, inside the node.
pub(crate) fn shell(command: &[String]) -> Result<()> {
    let mut node = if command.is_empty() { aether_node("shell") } else { aether_node("exec") };
    if !command.is_empty() {
        node.arg("--").args(command);
    }
    run::check(&mut node)
}

fn aether_node(verb: &str) -> Command {
    let mut command = Command::new(run::target("bin").join("aether-node"));
    command.current_dir(run::root()).arg(verb).arg("--dir").arg(run::target("node"));
    command
}
