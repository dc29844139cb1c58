//! `cargo xtask fuzz`: the targets of `tests/fuzz` under an engine that looks for new paths through the code.

mod engine;
mod report;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;

use crate::{prerequisites, run, tools};
use engine::{Engine, Target};
use report::Outcome;

/// What `fuzz` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How long it takes in all, in seconds, without the build.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seconds: u64,
    /// Only this target.
    #[arg(long)]
    target: Option<String>,
    /// Run this one input by the target and nothing else: a finding, again.
    #[arg(long, requires = "target")]
    input: Option<PathBuf>,
}

/// What builds the engine, besides Rust.
const PACKAGES: [(&str, &str); 1] = [("g++", "/usr/bin/g++")];

/// Builds, fuzzes, prints what was seen; fails on a finding.
pub(crate) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    prerequisites::packages(&PACKAGES)?;
    tools::build(&["libcni-1.1.2", "libcni-1.3.1"])?;
    let engine = Engine::build()?;
    let targets = chosen(engine::targets()?, args.target.as_deref())?;
    if let Some(input) = &args.input {
        let target = targets.first().context("no target")?;
        let input = std::path::absolute(input)?;
        run::check(&mut engine.once(target, &input))?;
        println!("{}: {} is no finding", target.name, input.display());
        return Ok(());
    }
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get).min(targets.len());
    let each = Duration::from_secs(args.seconds).mul_f64(share(jobs, targets.len()));
    let outcomes = run::step(&format!("fuzz {} targets, {} s each", targets.len(), each.as_secs()), || {
        side_by_side(&engine, &targets, jobs, each)
    })?;
    for outcome in &outcomes {
        println!("{outcome}");
    }
    let executions: u64 = outcomes.iter().map(|outcome| outcome.executions).sum();
    let findings = outcomes.iter().filter(|outcome| outcome.finding.is_some()).count();
    println!("{executions} executions, {findings} findings");
    ensure!(findings == 0, "{findings} findings");
    Ok(())
}

fn chosen(targets: Vec<Target>, name: Option<&str>) -> Result<Vec<Target>> {
    let Some(name) = name else { return Ok(targets) };
    let names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let found: Vec<Target> = targets.into_iter().filter(|target| target.name == name).collect();
    if found.is_empty() {
        bail!("no target is named {name:?}: there are {}", names.join(", "));
    }
    Ok(found)
}

/// The share of the whole time that each of `targets` gets, `jobs` of them at once.
fn share(jobs: usize, targets: usize) -> f64 {
    let count = |number: usize| f64::from(u16::try_from(number.max(1)).unwrap_or(u16::MAX));
    count(jobs) / count(targets)
}

/// Runs as many targets at once as there are processors. They come back in the order in which they were given.
fn side_by_side(engine: &Engine, targets: &[Target], jobs: usize, each: Duration) -> Result<Vec<Outcome>> {
    let queue = Mutex::new(targets.iter().enumerate());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((place, target)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let outcome = engine.fuzz(target, each);
                    if let Ok(mut done) = done.lock() {
                        done.push((place, outcome));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| anyhow::anyhow!("a thread that fuzzes panicked"))?;
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Where everything of a run lies.
fn directory() -> PathBuf {
    run::target("fuzz")
}

/// Where findings are saved.
fn findings() -> PathBuf {
    directory().join("findings")
}

/// A path as the user would write it.
fn shown(path: &Path) -> String {
    path.strip_prefix(run::root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_shared_among_the_targets() {
        let each = |jobs, targets| Duration::from_secs(300).mul_f64(share(jobs, targets)).as_secs();
        assert_eq!((each(2, 6), each(1, 1), each(1, 3)), (100, 300, 100));
    }
}
