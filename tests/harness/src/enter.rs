//! Commands and a shell inside the node.

use std::path::Path;
use std::process::{Command, ExitCode};

use aether_harness::Node;
use anyhow::{Context as _, bail};

/// Runs a command inside, with this terminal.
pub(crate) fn exec(dir: &Path, command: &[String]) -> anyhow::Result<ExitCode> {
    let (program, arguments) = command.split_first().context("a command is needed")?;
    let node = find(dir)?;
    let mut inside = node.command(program);
    inside.args(arguments);
    finish(inside)
}

/// Opens a shell inside.
pub(crate) fn shell(dir: &Path) -> anyhow::Result<ExitCode> {
    let node = find(dir)?;
    crate::report::line(
        "a shell inside the node; aetherctl, aether-cni-install, ctr and ip are in PATH; leave it with exit",
    );
    let mut inside = node.command("sh");
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

fn find(dir: &Path) -> anyhow::Result<Node> {
    match Node::find(dir)? {
        Some(node) => Ok(node),
        None => bail!("no node is up in {}; start one with: cargo xtask up", dir.display()),
    }
}
