//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use aether_harness::Containerd;
use clap::{Args as Group, Parser, Subcommand};

use crate::{down, enter, hold, rolls, up};

/// One node with a real containerd and pods through the chain, that stays until it is removed.
#[derive(Debug, Parser)]
#[command(name = "aether-node", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// The node's directory.
#[derive(Debug, Group)]
pub(crate) struct Place {
    /// The node's directory; it is the node's name too.
    #[arg(long)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the node, install, start the agent and two pods, and say what there is to see.
    Up {
        #[command(flatten)]
        place: Place,
        /// Which containerd: 1 is Debian's, 2 is built from its Go module.
        #[arg(long, default_value = "2", value_parser = parse)]
        containerd: Containerd,
    },
    /// Remove the node and all that belongs to it.
    Down {
        #[command(flatten)]
        place: Place,
    },
    /// Roll to a new agent under load, and print the figures.
    Roll {
        #[command(flatten)]
        place: Place,
    },
    /// Run a command inside the node.
    Exec {
        #[command(flatten)]
        place: Place,
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<String>,
    },
    /// Start a bare node, print its directory and pid, and keep it until standard input ends.
    #[command(hide = true)]
    Hold {
        /// Which containerd.
        #[arg(long, default_value = "2", value_parser = parse)]
        containerd: Containerd,
    },
    /// Open a shell inside the node.
    Shell {
        #[command(flatten)]
        place: Place,
    },
}

fn parse(text: &str) -> Result<Containerd, String> {
    match text {
        "1" => Ok(Containerd::V1),
        "2" => Ok(Containerd::V2),
        _ => Err("1 (Debian's 1.6) or 2 (the built 2.4)".to_owned()),
    }
}

/// Does what the command line asks.
pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Up { place, containerd } => {
            up::run(&place.dir, containerd).await.map(|()| ExitCode::SUCCESS)
        }
        Command::Down { place } => down::run(&place.dir).map(|()| ExitCode::SUCCESS),
        Command::Roll { place } => rolls::run(&place.dir).await.map(|()| ExitCode::SUCCESS),
        Command::Exec { place, command } => enter::exec(&place.dir, &command).await,
        Command::Hold { containerd } => hold::run(containerd).await.map(|()| ExitCode::SUCCESS),
        Command::Shell { place } => enter::shell(&place.dir).await,
    }
}
