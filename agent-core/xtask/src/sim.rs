//! The takeover simulation: `aether-sim`, built for speed.

use anyhow::Result;
use clap::Parser;

use crate::run;

/// What `sim` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// How many seeds are played.
    #[arg(long, default_value_t = 20_000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Build this fault in, and expect that it is found (an unknown name lists them).
    #[arg(long)]
    fault: Option<String>,
    /// Build in each fault after the other, and expect that each is found.
    #[arg(long, conflicts_with_all = ["fault", "trace"])]
    faults: bool,
    /// Play one seed and print every step of it.
    #[arg(long)]
    trace: Option<u64>,
}

/// Builds and plays.
pub(crate) fn run(args: &Args) -> Result<()> {
    run::step("build the simulation", || {
        run::check(run::cargo().args(["build", "--quiet", "--release", "--package", "aether-sim"]))
    })?;
    let mut sim = run::cargo();
    sim.args(["run", "--quiet", "--release", "--package", "aether-sim", "--"]);
    sim.args(["--seeds", &args.seeds.to_string(), "--from", &args.from.to_string()]);
    if let Some(fault) = &args.fault {
        sim.args(["--fault", fault]);
    }
    if args.faults {
        sim.arg("--faults");
    }
    if let Some(seed) = args.trace {
        sim.args(["--trace", &seed.to_string()]);
    }
    run::check(&mut sim)
}
