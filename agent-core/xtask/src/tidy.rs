//! The house rules as checks.

mod dependencies;
mod text;

use anyhow::{Result, bail};
use clap::Parser;

use crate::{deny, run, source};

/// What `tidy` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Check the advisory database too, which needs the network.
    #[arg(long)]
    online: bool,
    /// Only the checks that compile and fetch nothing.
    #[arg(long)]
    quick: bool,
}

/// One breach of a rule, and where.
type Breaches = Vec<String>;

/// Runs every check and names every breach.
pub(crate) fn run(args: &Args) -> Result<()> {
    let sources = source::all()?;
    let mut breaches: Breaches = Vec::new();
    breaches.extend(text::check(&sources));
    breaches.extend(dependencies::check()?);
    breaches.extend(top_level()?);
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    if !breaches.is_empty() {
        bail!("{} breaches of the house rules", breaches.len());
    }
    run::step("formatting", || run::check(run::cargo().args(["fmt", "--all", "--check"])))?;
    if args.quick {
        return Ok(());
    }
    run::step("clippy", || {
        run::check(run::cargo().args([
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--features",
            "aether-benches/modules",
            "--",
            "-Dwarnings",
        ]))
    })?;
    let network = if args.online { deny::Network::Online } else { deny::Network::Offline };
    run::step("cargo deny", || deny::check(network))?;
    println!("tidy: {} files, nothing to say", sources.len());
    Ok(())
}

/// What may stand at the top of the repository.
const TOP: [&str; 20] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "README.md",
    "agent-core",
    "charts",
    "clippy.toml",
    "cni-install",
    "cni-plugin",
    "deny.toml",
    "modules",
    "rustfmt.toml",
    "tests",
    "wit",
    "CHANGELOG.md",
    "SECURITY.md",
];

fn top_level() -> Result<Breaches> {
    let mut git = std::process::Command::new("git");
    git.current_dir(run::root()).args(["ls-files", "--cached", "--others", "--exclude-standard"]);
    let listed = run::output(&mut git)?;
    let tops: std::collections::BTreeSet<&str> =
        listed.lines().map(|line| line.split('/').next().unwrap_or(line)).collect();
    let strangers = tops.into_iter().filter(|top| !TOP.contains(top));
    Ok(strangers.map(|top| format!("{top}: the top level is fixed (ARCHITECTURE.md)")).collect())
}
