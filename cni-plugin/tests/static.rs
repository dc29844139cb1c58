//! The binary linked as it ships (K13), without the fat LTO of `--profile tiny`, for which no test pays; its size and memory are
//! measured by `cargo xtask bench plugin` (P7).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::agent::{Agent, Mood};
use common::{Place, eventually};
use serde_json::json;

/// Builds it by the flags of static.toml, where that puts it: whoever built it before has saved us the time.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "aether-cni",
            "--profile",
            "release",
            "--target",
            &triple,
        ])
        .args(["--config", "cni-plugin/static.toml", "--target-dir"])
        .arg(target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "cannot build the static plugin");
    target.join(triple).join("release/aether-cni")
}

/// The types of the program headers of an ELF file.
fn headers(elf: &[u8]) -> Vec<u32> {
    let number =
        |at: usize, n: usize| elf[at..at + n].iter().rev().fold(0usize, |sum, b| sum << 8 | usize::from(*b));
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "not a little-endian ELF of 64 bits");
    let (offset, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).map(|n| u32::try_from(number(offset + n * size, 4)).unwrap()).collect()
}

/// bugs.md E5.
#[test]
fn k13_e5_the_static_binary_needs_nothing_of_the_node_and_has_one_thread() {
    const PT_INTERP: u32 = 3;
    let binary = build();
    let elf = std::fs::read(&binary).unwrap();
    assert!(!headers(&elf).contains(&PT_INTERP), "it needs a loader");

    // In an empty root it runs: no file of the node is needed.
    let place = Place::new();
    let root = place.dir.path().join("root");
    std::fs::create_dir(&root).unwrap();
    // By another process: a child of this one could have it open for writing still when it is run.
    assert!(Command::new("cp").arg(&binary).arg(&root).status().unwrap().success());
    let mut chroot = Command::new("chroot");
    chroot.arg(&root).arg("/aether-cni");
    let output = common::Plugin::new("VERSION").through(chroot).stdin(r#"{"cniVersion":"1.0.0"}"#).run();
    assert_eq!(output.document()["cniVersion"], "1.0.0");

    // While it waits for an answer, everything that it needs is there.
    let agent = Agent::start(&place.socket(), Mood::Silent);
    let running = place.add(&json!({})).through(Command::new(&binary)).start();
    eventually("it was asked", || !agent.asked().is_empty());
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert_eq!(field("Threads:"), 1);
    drop(agent);
    let _next = Agent::start(&place.socket(), Mood::Serving);
    running.wait().document();
}
