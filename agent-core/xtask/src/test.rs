//! The tests, by tiers, with one closing line over all of them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};

use crate::{build, prerequisites, run, tools};

/// What `test` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The tiers; none means all.
    tiers: Vec<Tier>,
    /// Run only the tests whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// A tier of tests, by what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// Unit, property and process tests: this machine's kernel and root, nothing else.
    Unit,
    /// Modules under real limits, the hostile ones included.
    Modules,
    /// The list editor against the real libcni, and what fuzzing once found.
    Libcni,
    /// A node with a real containerd, in both versions.
    Cni,
    /// Several agents on such a node: rolls under load, and what breaks them.
    Node,
}

/// Packages that are not of the unit tier. Those of the modules compile components, so they are built apart: the agent's own
/// tests stay without a compiler in it.
const PEERS: [(&str, Tier); 7] = [
    ("aether-modc", Tier::Modules),
    ("aether-test-guests", Tier::Modules),
    ("aether-test-libcni", Tier::Libcni),
    ("aether-fuzz", Tier::Libcni),
    ("aether-harness", Tier::Cni),
    ("aether-test-cni", Tier::Cni),
    ("aether-test-node", Tier::Node),
];

/// What the runners said, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds a closing line of the test runner.
    fn add(&mut self, line: &str) {
        let Some(rest) = line.strip_prefix("test result: ") else { return };
        let count = |what: &str| {
            let before = rest.split(what).next()?;
            before.rsplit(|c: char| !c.is_ascii_digit() && c != ' ').next()?.trim().parse::<u64>().ok()
        };
        self.passed += count(" passed").unwrap_or(0);
        self.failed += count(" failed").unwrap_or(0);
        self.ignored += count(" ignored").unwrap_or(0);
    }
}

/// Runs the tiers and prints what they came to.
pub(crate) fn run(args: &Args) -> Result<()> {
    let wanted = |tier: Tier| args.tiers.is_empty() || args.tiers.contains(&tier);
    prerequisites::ensure()?;
    let mut tally = Tally::default();
    let mut broken = Vec::new();
    let tiers = [Tier::Unit, Tier::Modules, Tier::Libcni, Tier::Cni, Tier::Node];
    for tier in tiers.into_iter().filter(|tier| wanted(*tier)) {
        if tier == Tier::Unit {
            // Agent and aetherctl run it as a child, beside themselves.
            run::step("build the compiler of modules", || {
                run::check(run::cargo().args(["build", "--package", "aether-modc"]))
            })?;
        }
        if matches!(tier, Tier::Libcni | Tier::Cni | Tier::Node) {
            tools::build_all()?;
        }
        if matches!(tier, Tier::Cni | Tier::Node) {
            build::binaries(build::Build::Quick)?;
        }
        if !run::step(&format!("tests: {tier:?}"), || cargo_test(tier, args.only.as_deref(), &mut tally))? {
            broken.push(format!("{tier:?}").to_lowercase());
        }
    }
    println!("{} passed, {} failed, {} skipped", tally.passed, tally.failed, tally.ignored);
    if !broken.is_empty() {
        bail!("failed tiers: {}", broken.join(", "));
    }
    if tally.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// Runs one tier; whether it passed.
fn cargo_test(tier: Tier, only: Option<&str>, tally: &mut Tally) -> Result<bool> {
    let mut cargo = run::cargo();
    cargo.args(["test", "--no-fail-fast"]);
    if tier == Tier::Unit {
        cargo.arg("--workspace");
        for (package, _) in PEERS {
            cargo.args(["--exclude", package]);
        }
    } else {
        for (package, _) in PEERS.iter().filter(|(_, of)| *of == tier) {
            cargo.args(["--package", package]);
        }
    }
    if let Some(only) = only {
        cargo.arg(only);
    }
    stream(&mut cargo, tally)
}

/// Passes the runner's output on while adding up its closing lines.
fn stream(cargo: &mut Command, tally: &mut Tally) -> Result<bool> {
    let line = run::shown(cargo);
    let mut child = cargo.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{line}`"))?;
    let mut out = std::io::stdout();
    let mut reader = BufReader::new(child.stdout.take().context("the runner's output")?);
    let mut text = Vec::new();
    while reader.read_until(b'\n', &mut text)? > 0 {
        out.write_all(&text)?;
        tally.add(String::from_utf8_lossy(&text).trim_end());
        text.clear();
    }
    out.flush()?;
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_add_up_and_other_lines_do_not_count() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.14s",
        );
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.14s");
        tally.add("test k01_x ... ok");
        assert_eq!(tally, Tally { passed: 15, failed: 2, ignored: 1 });
    }
}
