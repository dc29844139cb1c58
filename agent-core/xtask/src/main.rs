//! The one vocabulary of this repository, for people and CI: `cargo xtask --help`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

mod bench;
mod build;
mod crash;
mod deny;
mod fuzz;
mod model;
mod node;
mod prerequisites;
mod rows;
mod rules;
mod run;
mod sim;
mod source;
mod test;
mod tidy;
mod tools;

use clap::{Parser, Subcommand};

/// Builds, runs and checks Aether.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is needed, build, and start one node with real containerd, two pods through the chain, and one roll under load.
    Up(node::Up),
    /// Roll the node that `up` left to a new agent, under load, and print the figures.
    Roll,
    /// Remove the node that `up` left.
    Down,
    /// Open a shell inside the node that `up` left, or run a command there.
    Shell {
        /// The command; without one, a shell.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Run the tests: all, or the tiers that are named.
    Test(test::Args),
    /// Check the house: dependency rule, forbidden calls, sizes, formatting, clippy, `cargo deny`.
    Tidy(tidy::Args),
    /// Print for each rule of the contract the tests that carry its number.
    Rules(rules::Args),
    /// Measure, and write JSON under target/bench/.
    Bench(bench::Args),
    /// Build the binaries that a node runs into target/bin.
    Build,
    /// Check the model of the takeover protocol with Spin: the rules hold, each weaker reading and each fault is found.
    Model(model::Args),
    /// Kill agents, installer and plugin at random moments on a node under load, and audit what is left.
    Crash(crash::Args),
    /// Play the takeover of a node by many seeds: kills, stops and disturbs at every step, and judges.
    Sim(sim::Args),
    /// Fuzz what reads input from outside: list editor, plugin, our files, the hand-over. Looks for new paths in the code.
    Fuzz(fuzz::Args),
    /// Build the pinned Go tools that the tests use into target/tools.
    Tools(tools::Args),
}

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Up(args) => node::up(&args),
        Command::Roll => node::roll(),
        Command::Down => node::down(),
        Command::Shell { command } => node::shell(&command),
        Command::Test(args) => test::run(&args),
        Command::Tidy(args) => tidy::run(&args),
        Command::Rules(args) => rules::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Build => prerequisites::ensure().and_then(|()| build::binaries(build::Build::Quick)),
        Command::Model(args) => model::run(&args),
        Command::Crash(args) => crash::run(&args),
        Command::Sim(args) => sim::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Tools(args) => prerequisites::ensure().and_then(|()| tools::run(&args)),
    };
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
