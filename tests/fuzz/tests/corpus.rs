//! Every seed, and every input that was once a finding, by each target. One of them asks the judges, which
//! `cargo xtask test libcni` builds.

use aether_fuzz::{TARGETS, corpus};

#[test]
fn i02_k02_s02_t13_seeds_and_former_findings_are_no_findings() {
    for target in &TARGETS {
        let seeds = (target.seeds)().expect("seeds");
        assert!(seeds.len() >= 5, "{} has {} seeds", target.name, seeds.len());
        for seed in &seeds {
            (target.run)(seed);
        }
        for entry in std::fs::read_dir(corpus(target)).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            (target.run)(&std::fs::read(&path).expect("an input"));
        }
    }
}

/// Cheap variations of the seeds: each byte cut off, one changed. An engine does better; this runs with every test.
#[test]
fn i02_k02_s02_t13_variations_of_the_seeds_are_no_findings() {
    for target in &TARGETS {
        for seed in (target.seeds)().expect("seeds") {
            let step = (seed.len() / 8).max(1);
            for at in (0..seed.len()).step_by(step) {
                (target.run)(&seed[..at]);
                for byte in [b'"', b'{', b'}', b',', 0, 0xFF, seed[at].wrapping_add(1)] {
                    let mut varied = seed.clone();
                    varied[at] = byte;
                    (target.run)(&varied);
                }
            }
        }
    }
}
