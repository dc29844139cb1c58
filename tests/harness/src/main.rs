//! `aether-node`: one node that stays, for `cargo xtask up`, `shell` and `down`.

mod cli;
mod down;
mod enter;
mod hold;
mod report;
mod rolls;
mod up;

use clap::Parser as _;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match cli::run(cli::Args::parse()).await {
        Ok(code) => code,
        Err(error) => {
            report::line(&format!("aether-node: {error:#}"));
            std::process::ExitCode::FAILURE
        }
    }
}
