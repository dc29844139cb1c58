//! `cargo xtask bench probes`: P11.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Parser;

use crate::build::probe;
use crate::{prerequisites, run};

/// What it takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many execs of each program.
    #[arg(long, default_value_t = 1000)]
    execs: u32,
}

pub(super) fn run(args: &Args) -> Result<()> {
    prerequisites::ensure()?;
    let (tiny, plain, hello) = (probe::tiny()?, probe::plain()?, hello()?);
    let mut bench = super::program("bench-probes");
    bench.arg("--tiny").arg(tiny).arg("--plain").arg(plain).arg("--hello").arg(hello);
    run::check(bench.arg("--execs").arg(args.execs.to_string()))
}

/// Builds the comparison, which says hello in Go, in this very run.
fn hello() -> Result<PathBuf> {
    let out = run::target("bench").join("hello");
    run::step("build the comparison in Go", || {
        let mut go = Command::new("go");
        go.current_dir(run::root().join("tests/tools/hello")).env("CGO_ENABLED", "0").env("GOWORK", "off");
        run::check(go.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(&out).arg("."))
    })?;
    Ok(out)
}
