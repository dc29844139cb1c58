//! `aetherctl policy`: an operator's policy from the template to the file that an agent takes (M12). Asks no agent.

mod build;
mod inspect;
mod scaffold;
mod trial;

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::{Output, exit};
use crate::render;

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Makes a directory with a policy that works, its scenarios and a README.
    New {
        /// The directory, whose last part is the policy's name: lower-case letters, digits and '-'.
        directory: PathBuf,
        /// The module SDK's source.
        #[arg(long, env = "AETHER_MODULE_SDK", value_name = "DIR", default_value = scaffold::SDK)]
        sdk: PathBuf,
    },
    /// Runs the policy under its own manifest, as an agent would, on each of its scenarios. Exit code 0: all came out as
    /// they say, 5: not. Builds it first where the directory holds a Cargo.toml or a policy.c.
    Test {
        /// The policy's directory.
        #[arg(default_value = ".")]
        directory: PathBuf,
        /// The compiler of modules [default: aether-modc beside this program].
        #[arg(long, env = "AETHER_MODULE_COMPILER", value_name = "FILE")]
        compiler: Option<PathBuf>,
    },
    /// Shows what a component imports and exports, the world it fits, and the smallest grant that it needs.
    Inspect {
        /// The component.
        file: PathBuf,
    },
    /// Builds the policy and makes module.wasm of it; or makes a component of a core module.
    Pack {
        /// The policy's directory, or a core module built against the contract.
        #[arg(default_value = ".")]
        from: PathBuf,
        /// Where to [default: module.wasm in the directory].
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
}

/// Does it, and returns what to print and the exit code. Blocks.
pub(crate) fn run(command: &Command, output: Output) -> anyhow::Result<(String, u8)> {
    match command {
        Command::New { directory, sdk } => Ok((scaffold::make(directory, sdk)?, exit::OK)),
        Command::Test { directory, compiler } => {
            let trial = trial::run(directory, compiler.clone())?;
            let code = if trial.is_as_expected() { exit::OK } else { exit::NOT_AS_EXPECTED };
            let text = match output {
                Output::Table => trial.table(),
                Output::Json => render::json(&trial)?,
            };
            Ok((text, code))
        }
        Command::Inspect { file } => {
            let seen = inspect::file(file)?;
            let text = match output {
                Output::Table => seen.table(),
                Output::Json => render::json(&seen)?,
            };
            Ok((text, exit::OK))
        }
        Command::Pack { from, to } => Ok((build::pack(from, to.clone())?, exit::OK)),
    }
}
