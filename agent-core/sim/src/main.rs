//! Plays seeds and prints what they came to: `aether-sim --seeds N [--from SEED] [--fault NAME] [--trace SEED]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its terminal")]

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use aether_sim::{Fault, Figures, Violation};
use clap::Parser;

/// Plays seeds of the takeover simulation.
#[derive(Debug, Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Builds a fault in, and expects that it is found.
    #[arg(long)]
    fault: Option<Fault>,
    /// Builds in each fault after the other, and expects that each is found.
    #[arg(long, conflicts_with = "fault")]
    faults: bool,
    /// Plays one seed and prints every step of it.
    #[arg(long)]
    trace: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(seed) = args.trace {
        let (lines, result) = aether_sim::trace(seed, args.fault);
        for line in lines {
            println!("{line}");
        }
        return end(result.is_ok());
    }
    if args.faults {
        let found = Fault::ALL.map(|fault| expect_found(&args, fault));
        return end(found.iter().all(|found| *found));
    }
    if let Some(fault) = args.fault {
        return end(expect_found(&args, fault));
    }
    let begin = Instant::now();
    let (figures, violations) = play(&args, None, u64::MAX);
    for violation in violations.iter().take(20) {
        println!("{violation}");
    }
    println!(
        "{} seeds, {} violations, {} steps in {:.1} s: {} ADDs, {} failed within T10's exception, {} DELs ({} by tombstone), {} \
         takeovers, {} agents killed or stopped",
        args.seeds,
        violations.len(),
        figures.steps,
        begin.elapsed().as_secs_f64(),
        figures.added,
        figures.excused,
        figures.deleted,
        figures.tombstones,
        figures.takeovers,
        figures.harmed,
    );
    if let Some(violation) = violations.first() {
        println!("every step of the first: cargo xtask sim --trace {}", violation.seed);
    }
    end(violations.is_empty())
}

fn end(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn expect_found(args: &Args, fault: Fault) -> bool {
    let (_, violations) = play(args, Some(fault), 1);
    match violations.first() {
        Some(violation) => println!("found      {fault}: {violation}"),
        None => println!("NOT FOUND  {fault} in {} seeds", args.seeds),
    }
    !violations.is_empty()
}

/// Plays the seeds on every core, until `enough` violations are found; the violations by their seeds.
fn play(args: &Args, fault: Option<Fault>, enough: u64) -> (Figures, Vec<Violation>) {
    let next = AtomicU64::new(0);
    let found = AtomicU64::new(0);
    let total = Mutex::new((Figures::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while found.load(Ordering::Relaxed) < enough {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= args.seeds {
                        break;
                    }
                    let result = aether_sim::run(args.from + index, fault);
                    found.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
                    if let Ok(mut total) = total.lock() {
                        match result {
                            Ok(figures) => total.0.add(&figures),
                            Err(violation) => total.1.push(violation),
                        }
                    }
                    if index > 0 && index.is_multiple_of(5_000) {
                        eprintln!("    {index} seeds");
                    }
                }
            });
        }
    });
    let (figures, mut violations) = total.into_inner().unwrap_or_default();
    violations.sort_by_key(|violation| violation.seed);
    (figures, violations)
}
