//! `aether-cni-install`: see `--help`.

use std::path::Path;
use std::process::ExitCode;

use aether_cni_install::args::Args;
use aether_cni_install::stop::Stop;
use aether_cni_install::{config, exit::Exit, log};
use aether_domain::text::error_chain;
use clap::Parser as _;

fn main() -> ExitCode {
    ExitCode::from(run(Args::parse()).code())
}

fn run(args: Args) -> Exit {
    let program = std::env::current_exe().ok();
    let config = match config::build(args, program.as_deref(), Path::is_dir) {
        Ok(config) => config,
        Err(error) => {
            log::line(format_args!("error: {}; see --help", error_chain(&error)));
            return Exit::Usage;
        }
    };
    let stop = match Stop::on_signals() {
        Ok(stop) => stop,
        Err(error) => {
            log::line(format_args!("error: cannot listen for SIGTERM: {error}"));
            return Exit::Failed;
        }
    };
    match aether_cni_install::run(&config, &stop) {
        Ok(exit) => exit,
        Err(error) => {
            log::line(format_args!("error: {}", error_chain(&error)));
            if let Some(remedy) = error.remedy() {
                log::line(format_args!("what to do: {remedy}"));
            }
            error.exit()
        }
    }
}
