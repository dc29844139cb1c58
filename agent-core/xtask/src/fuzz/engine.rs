//! Building the engine, and running it on one target.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{directory, findings};
use crate::fuzz::report::Outcome;
use crate::{build, run};

/// The longest that one input may take, in seconds: a hang is a finding.
const INPUT_SECONDS: u32 = 20;
/// The most memory of one engine, in MB: more is a finding.
const MEMORY: u32 = 2048;

/// One target, as `aether-fuzz` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// Its name.
    pub(super) name: String,
    /// The longest input in bytes.
    pub(super) longest: String,
}

impl Target {
    /// Reads a line of `aether-fuzz`.
    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        Some(Self { name: parts.next()?.to_owned(), longest: parts.next()?.to_owned() })
    }

    /// Where its seeds, words and new inputs are.
    fn work(&self) -> PathBuf {
        directory().join("work").join(&self.name)
    }
}

/// The built engine.
#[derive(Debug)]
pub(super) struct Engine {
    program: PathBuf,
}

/// Every target, with its seeds written out.
pub(super) fn targets() -> Result<Vec<Target>> {
    let mut fuzz = run::cargo();
    fuzz.args(["run", "--quiet", "--package", "aether-fuzz", "--"]).arg(directory().join("work"));
    let listed = run::output(&mut fuzz)?;
    listed.lines().map(|line| Target::read(line).with_context(|| format!("no target: {line:?}"))).collect()
}

impl Engine {
    /// Builds it with coverage, in a target directory of its own.
    pub(super) fn build() -> Result<Self> {
        let package = run::root().join("tests/fuzz/engine");
        let target = directory().join("build");
        let triple = build::host_triple()?;
        run::step("build the fuzzing engine with coverage", || {
            run::check(
                run::cargo()
                    .current_dir(&package)
                    .env_remove("RUSTFLAGS")
                    .env_remove("CARGO_ENCODED_RUSTFLAGS")
                    .args(["build", "--quiet", "--release", "--target", &triple])
                    .args(["--config", "coverage.toml", "--target-dir"])
                    .arg(&target),
            )
        })?;
        Ok(Self { program: target.join(triple).join("release/aether-fuzz-engine") })
    }

    /// Runs one input, with our terminal.
    pub(super) fn once(&self, target: &Target, input: &Path) -> Command {
        let mut command = self.command(target);
        command.arg(input);
        command
    }

    /// Looks for findings so long.
    pub(super) fn fuzz(&self, target: &Target, time: Duration) -> Result<Outcome> {
        let work = target.work();
        let corpus = work.join("corpus");
        for place in [&corpus, &findings()] {
            std::fs::create_dir_all(place).with_context(|| format!("make {}", place.display()))?;
        }
        let log_file = work.join("log");
        let log =
            std::fs::File::create(&log_file).with_context(|| format!("write {}", log_file.display()))?;
        let mut command = self.command(target);
        command
            // What is new goes into the first, which the next run begins with.
            .arg(&corpus)
            .arg(work.join("seeds"))
            .args(saved(target))
            .arg(format!("-max_total_time={}", time.as_secs().max(1)))
            .arg(format!("-max_len={}", target.longest))
            .args(words(&work.join("words")))
            .arg(format!("-artifact_prefix={}/{}-", findings().display(), target.name))
            .args(["-print_final_stats=1", "-reload=0"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let status = command.status().with_context(|| format!("run {}", self.program.display()))?;
        let text = std::fs::read(&log_file).with_context(|| format!("read {}", log_file.display()))?;
        Ok(Outcome::read(&target.name, &String::from_utf8_lossy(&text), status.success(), &log_file))
    }

    fn command(&self, target: &Target) -> Command {
        let mut command = Command::new(&self.program);
        command
            .current_dir(directory())
            .env("AETHER_FUZZ_TARGET", &target.name)
            .arg(format!("-timeout={INPUT_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY}"));
        command
    }
}

/// The target's words, if it has any: the engine refuses an empty file.
fn words(file: &Path) -> Option<String> {
    let length = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
    (length > 0).then(|| format!("-dict={}", file.display()))
}

/// The inputs that were once findings, which lie beside the code.
fn saved(target: &Target) -> Option<PathBuf> {
    let directory = run::root().join("tests/fuzz/corpus").join(&target.name);
    directory.is_dir().then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_what_the_list_says() {
        let target = Target::read("list\t4096\tthe list editor").expect("a target");
        assert_eq!((target.name.as_str(), target.longest.as_str()), ("list", "4096"));
        assert_eq!(Target::read("list"), None);
    }
}
