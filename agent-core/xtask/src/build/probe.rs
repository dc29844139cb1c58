//! `agent-ready`, static: quick with glibc, and as it ships within its byte budget (B01).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::{Build, host_triple, put, target_dir};
use crate::{prerequisites, run};

const PACKAGE: &str = "aether-probes";
const PROGRAM: &str = "agent-ready";
/// Debian's Rust: the one whose standard library's sources are there to be built for their size.
const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";

/// Builds the probe into the build's directory.
pub(super) fn build(how: Build) -> Result<()> {
    let built = match how {
        Build::Quick => plain()?,
        Build::Ship => tiny()?,
    };
    put(&built, &how.directory(), PROGRAM)
}

/// Builds the probe with plain static glibc, as it ships where no other route is at hand, and gives back its path.
pub(crate) fn plain() -> Result<PathBuf> {
    let triple = host_triple()?;
    run::step("build the static probe", || {
        run::check(
            run::cargo()
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .args(["build", "--quiet", "--package", PACKAGE, "--profile", "tiny", "--target", &triple])
                .args(["--config", "agent-core/probes/plain.toml"]),
        )
    })?;
    Ok(target_dir()?.join(triple).join("tiny").join(PROGRAM))
}

/// Builds the probe as it ships, by `agent-core/probes/tiny.toml`, and gives back its path.
pub(crate) fn tiny() -> Result<PathBuf> {
    prerequisites::packages(&prerequisites::PROBES)?;
    // A directory of its own: another compiler would make cargo forget what it knows of this one.
    let target = target_dir()?.join("probes");
    let triple = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let unwinder = unwinder(&target.join("unwind"))?;
    let link = format!("target.{triple}.rustflags=[{:?}]", format!("-Lnative={}", unwinder.display()));
    run::step("build the probe as it ships (the standard library for its size, musl)", || {
        run::check(
            Command::new(CARGO)
                .current_dir(run::root())
                .env("RUSTC", RUSTC)
                .env("RUSTC_BOOTSTRAP", "1")
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .args(["build", "--quiet", "--locked", "--package", PACKAGE, "--profile", "tiny"])
                .args(["--target", &triple, "--config", "agent-core/probes/tiny.toml", "--config", &link])
                .arg("--target-dir")
                .arg(&target),
        )
    })?;
    Ok(target.join(triple).join("tiny").join(PROGRAM))
}

/// A directory with gcc's unwinder under the name by which the standard library links it for musl. Nothing of it is used: a
/// panic ends the process at once.
fn unwinder(directory: &Path) -> Result<PathBuf> {
    let printed = run::output(Command::new("gcc").arg("-print-file-name=libgcc_eh.a"))?;
    let library = Path::new(printed.trim());
    ensure!(
        library.is_absolute(),
        "gcc has no libgcc_eh.a, which the probe is linked against: install gcc and libgcc-12-dev"
    );
    put(library, directory, "libunwind.a").context("make gcc's unwinder ready for musl")?;
    Ok(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget of the shipped binary in bytes (P11).
    const BUDGET: usize = 100_000;

    /// The types of the program headers of an ELF file.
    fn headers(elf: &[u8]) -> Vec<u32> {
        let number = |at: usize, n: usize| {
            elf[at..at + n].iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
        };
        assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "not a little-endian ELF of 64 bits");
        let (offset, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        (0..count).map(|n| u32::try_from(number(offset + n * size, 4)).unwrap()).collect()
    }

    #[test]
    fn b01_the_shipped_probe_is_static_and_within_its_byte_budget() {
        const PT_INTERP: u32 = 3;
        let built = tiny().unwrap();
        let elf = std::fs::read(&built).unwrap();
        assert!(
            elf.len() <= BUDGET,
            "{} has {} bytes, its budget is {BUDGET}: see what was added, not the budget",
            built.display(),
            elf.len()
        );
        assert!(!headers(&elf).contains(&PT_INTERP), "{} needs a loader", built.display());
        // It is a probe, too: nobody is at that path.
        let output = Command::new(&built).args(["--socket", "/nonexistent/health.sock"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}
