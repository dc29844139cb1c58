//! Commands and a shell inside the node.

use std::path::Path;
use std::process::{Command, ExitCode};

use aether_harness::Node;
use anyhow::{Context as _, bail};

/// Runs a command inside, with this terminal.
pub(crate) async fn exec(dir: &Path, command: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().context("a command is needed")?;
    let mut inside = inside(dir, program).await?;
    inside.args(arguments);
    finish(inside)
}

/// Opens a shell inside.
pub(crate) async fn shell(dir: &Path) -> anyhow::Result<ExitCode> {
    let mut inside = inside(dir, "sh").await?;
    crate::report::line(
        "a shell inside the node; aetherctl, aether-cni-install, ctr and ip are in PATH; leave it with exit",
    );
    inside.env("PS1", "node# ").arg("-i");
    finish(inside)
}

fn finish(mut command: Command) -> anyhow::Result<ExitCode> {
    if let Some(term) = std::env::var_os("TERM") {
        command.env("TERM", term);
    }
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// A command inside, for which `aetherctl` asks the agent that owns the node.
async fn inside(dir: &Path, program: &str) -> anyhow::Result<Command> {
    let Some(node) = Node::find(dir)? else {
        bail!("no node is up in {}; start one with: cargo xtask up", dir.display());
    };
    let mut inside = node.command(program);
    if let Ok(owner) = node.owner().await {
        inside.env("AETHER_ADMIN_SOCKET", owner.admin_socket());
    }
    Ok(inside)
}
