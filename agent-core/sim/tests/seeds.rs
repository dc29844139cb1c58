//! The simulation holds, and each fault that is built in on purpose is found.

use std::sync::atomic::{AtomicBool, Ordering};

use aether_sim::Fault;

#[test]
fn t01_t05_t07_t10_t13_k04_k05_k07_k16_no_seed_violates_anything() {
    let mut takeovers = 0;
    for seed in 0..400 {
        let figures = aether_sim::run(seed, None).unwrap_or_else(|violation| panic!("{violation}"));
        takeovers += figures.takeovers;
    }
    assert!(takeovers > 400, "more than one owner a seed, or nothing was tried: {takeovers}");
}

#[test]
fn t14_a_seed_determines_the_whole_run() {
    let (lines, result) = aether_sim::trace(7, None);
    assert_eq!((lines, result), aether_sim::trace(7, None));
}

#[test]
fn t14_every_fault_that_is_built_in_is_found() {
    // Rare ones need a kill at one certain step.
    const SEEDS: u64 = 12_000;
    const THREADS: usize = 2;
    for fault in Fault::ALL {
        let found = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (first, _) in (0..).zip(0..THREADS) {
                let found = &found;
                scope.spawn(move || {
                    for seed in (first..SEEDS).step_by(THREADS).take_while(|_| !found.load(Ordering::Relaxed))
                    {
                        if aether_sim::run(seed, Some(fault)).is_err() {
                            found.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert!(found.into_inner(), "{fault} was not found in {SEEDS} seeds");
    }
}
