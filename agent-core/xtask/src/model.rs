//! The protocol's model, checked by Spin: `agent-core/docs/model/checks.txt` says what must come out.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;

use crate::{prerequisites, run};

/// What `model` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Run only the checks whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// A check may take so many seconds of a core, which does not depend on what else the machine does.
const CPU_SECONDS: &str = "--cpu=280";
/// And so much memory, in MiB.
const MEMORY: &str = "-DMEMLIM=8000";

/// What a check is expected to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Nothing is violated.
    Holds,
    /// Nothing is, and every run ends.
    Acyclic,
    /// Something is violated.
    Found,
}

/// One line of `checks.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    expected: Expected,
    name: String,
    defines: Vec<String>,
}

/// What a check said.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Holds,
    Found(String),
    Incomplete,
}

/// Runs the checks, as many at a time as there are cores.
pub(crate) fn run(args: &Args) -> Result<()> {
    prerequisites::packages(&[("spin", "/usr/bin/spin"), ("gcc", "/usr/bin/gcc")])?;
    let model = run::root().join("agent-core/docs/model");
    let list = model.join("checks.txt");
    let text = std::fs::read_to_string(&list).with_context(|| format!("read {}", list.display()))?;
    let mut checks = parse(&text)?;
    checks.retain(|check| args.only.as_ref().is_none_or(|only| check.name.contains(only)));
    let work = run::target("model");
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let unexpected = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let line = match judge(check, &model.join("takeover.pml"), &work.join(&check.name)) {
                        Ok(line) => line,
                        Err(error) => {
                            if let Ok(mut unexpected) = unexpected.lock() {
                                unexpected.push(check.name.clone());
                            }
                            format!("UNEXPECTED {}: {error:#}", check.name)
                        }
                    };
                    println!("{line}");
                }
            });
        }
    });
    let unexpected = unexpected.into_inner().unwrap_or_default();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{} checks in {seconds:.0} s, {} unexpected", checks.len(), unexpected.len());
    if !unexpected.is_empty() || checks.is_empty() {
        bail!("not as expected: {}; the trail is in {}", unexpected.join(", "), work.display());
    }
    Ok(())
}

/// Runs one check; a line that says what it said, or an error where that is not what was expected.
fn judge(check: &Check, model: &Path, work: &Path) -> Result<String> {
    let begin = Instant::now();
    let output = explore(check, model, work)?;
    let verdict = verdict(&output);
    let states = field(&output, "states, stored").unwrap_or("?");
    let seconds = begin.elapsed().as_secs_f64();
    let (said, what) = match (check.expected, &verdict) {
        (Expected::Holds | Expected::Acyclic, Verdict::Holds) => ("holds", ""),
        (Expected::Found, Verdict::Found(what)) => ("found", what.as_str()),
        (expected, got) => bail!("expected {expected:?}, got {got:?} after {states} states"),
    };
    Ok(format!("{said:<6} {:<46} {states:>10} states {seconds:>6.1} s  {what}", check.name))
}

fn explore(check: &Check, model: &Path, work: &Path) -> Result<String> {
    std::fs::create_dir_all(work).with_context(|| format!("make {}", work.display()))?;
    let (mode, search) = match check.expected {
        Expected::Holds | Expected::Found => ("-DSAFETY", None),
        Expected::Acyclic => ("-DNP", Some("-l")),
    };
    let at = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(work);
        command
    };
    run::output(at("spin").arg("-a").args(&check.defines).arg(model))?;
    run::output(at("gcc").args(["-O2", "-w", "-DCOLLAPSE", mode, MEMORY, "-o", "pan", "pan.c"]))?;
    let pan: PathBuf = work.join("pan");
    let mut explore = at("prlimit");
    explore.arg(CPU_SECONDS).arg(&pan).args(search).arg("-m1000000");
    // Its exit code says nothing about violations.
    let output = explore.output().with_context(|| format!("run {}", pan.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn verdict(output: &str) -> Verdict {
    let cut = ["max search depth", "out of memory", "reached -DMEMLIM"];
    if !output.contains("errors: ") || cut.iter().any(|cut| output.contains(cut)) {
        return Verdict::Incomplete;
    }
    if output.contains("errors: 0") {
        return Verdict::Holds;
    }
    let violated = output.lines().find_map(|line| line.strip_prefix("pan:1: "));
    Verdict::Found(meaning(violated.unwrap_or_default()))
}

/// What an assertion stands for.
fn meaning(assertion: &str) -> String {
    const MEANINGS: [(&str, &str); 14] = [
        ("gaveup", "I4: a call failed without the exception"),
        ("gone[n]", "I4: a waiting ADD was refused"),
        ("o!=7", "I5: nobody serves"),
        ("path==", "I6: the path is not the socket served"),
        ("ph[x]!=9", "I1: two agents serve"),
        ("lock==", "I1: accepts without the lock"),
        ("due", "T05: serves with a tombstone pending"),
        ("tomb[j]", "I3: a tombstone is left"),
        ("tbl[", "I2, I3: the table is not the disk"),
        ("word[j]!=4", "K16: a failed ADD left a record"),
        ("word[j]!=2", "I3: ghost record"),
        ("rec[ky", "I2: answered without its record"),
        ("word[", "I2, I7: an acknowledged record is gone"),
        ("non-progress", "a run does not end"),
    ];
    let found = MEANINGS.iter().find(|(text, _)| assertion.contains(text));
    found.map_or_else(|| assertion.to_owned(), |(_, meaning)| (*meaning).to_owned())
}

/// The number before `what`.
fn field<'a>(output: &'a str, what: &str) -> Option<&'a str> {
    let line = output.lines().find(|line| line.contains(what))?;
    line.split_whitespace().next()
}

fn parse(text: &str) -> Result<Vec<Check>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(check).collect()
}

fn check(line: &str) -> Result<Check> {
    let mut words = line.split_whitespace();
    let expected = match words.next() {
        Some("holds") => Expected::Holds,
        Some("acyclic") => Expected::Acyclic,
        Some("found") => Expected::Found,
        other => bail!("a check begins with holds, acyclic or found, not {other:?}: {line}"),
    };
    let name = words.next().with_context(|| format!("a check has a name: {line}"))?.to_owned();
    Ok(Check { expected, name, defines: words.map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t14_a_check_is_read_and_its_output_understood() {
        let checks = parse("# x\n\nfound a-b -DNA=2 -DBUG\n").unwrap();
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].defines, ["-DNA=2", "-DBUG"]);
        assert!(parse("maybe x\n").is_err());
        assert_eq!(verdict("errors: 0\n"), Verdict::Holds);
        assert_eq!(verdict("error: max search depth too small\nerrors: 0\n"), Verdict::Incomplete);
        assert_eq!(verdict("Killed\n"), Verdict::Incomplete);
        let ghost =
            verdict("pan:1: assertion violated ((word[j]!=2)||(rec[j]==0)) (at depth 9)\nerrors: 1\n");
        assert_eq!(ghost, Verdict::Found("I3: ghost record".to_owned()));
    }

    #[test]
    fn t14_the_list_of_checks_names_rules_weaker_readings_and_faults() {
        let list = run::root().join("agent-core/docs/model/checks.txt");
        let checks = parse(&std::fs::read_to_string(list).unwrap()).unwrap();
        let count = |expected| checks.iter().filter(|check| check.expected == expected).count();
        assert!(
            count(Expected::Holds) >= 16 && count(Expected::Found) >= 27 && count(Expected::Acyclic) == 1
        );
        let names: std::collections::BTreeSet<_> = checks.iter().map(|check| &check.name).collect();
        assert_eq!(names.len(), checks.len(), "a name is used twice");
    }
}
