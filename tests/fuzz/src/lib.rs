//! What is fuzzed: each target is a function of bytes that panics where something is wrong, so that an engine that looks for
//! panics finds it. The engine (`tests/fuzz/engine`) is a package apart; `cargo xtask fuzz` builds and runs it.
//!
//! [`TARGETS`] lists the targets with their seeds, which are made from the fixtures of the other tests. What an engine
//! once found lies in `corpus/<target>/` and is run again by `cargo test`.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is what a fuzzer looks for: a target says so what it found"
)]

pub mod input;
mod seeds;
mod targets;

use std::path::{Path, PathBuf};

/// One thing that is fuzzed.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, by which it is chosen.
    pub name: &'static str,
    /// What it checks.
    pub about: &'static str,
    /// Takes one input; a panic is a finding.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> anyhow::Result<Vec<Vec<u8>>>,
    /// Words that its inputs are made of, which an engine would not come upon.
    pub words: &'static [&'static str],
    /// The longest input that is tried, in bytes.
    pub longest: usize,
}

/// Every target.
pub const TARGETS: [Target; 6] = [
    Target {
        name: "list",
        about: "the list editor: no panic, edit then remove gives the original bytes, all of the states",
        run: targets::list::run,
        seeds: seeds::lists,
        words: seeds::LIST_WORDS,
        longest: 4096,
    },
    Target {
        name: "verdict",
        about: "the list editor beside libcni 1.1.2 and 1.3.1, before and after an edit",
        run: targets::verdict::run,
        seeds: seeds::lists,
        words: seeds::LIST_WORDS,
        longest: 1024,
    },
    Target {
        name: "request",
        about: "the plugin's environment and standard input, of every command",
        run: targets::request::run,
        seeds: seeds::requests,
        words: seeds::REQUEST_WORDS,
        longest: 4096,
    },
    Target {
        name: "state",
        about: "records, tombstones, wanted state, marker, chain and upstreams",
        run: targets::state::run,
        seeds: seeds::states,
        words: seeds::STATE_WORDS,
        longest: 4096,
    },
    Target {
        name: "handover",
        about: "the hand-over protocol's bytes, in pieces of any size",
        run: targets::handover::run,
        seeds: seeds::messages,
        words: seeds::MESSAGE_WORDS,
        longest: 4096,
    },
    Target {
        name: "takeover",
        about: "the takeover machine's named invariants under any order of events",
        run: targets::takeover::run,
        seeds: seeds::events,
        words: &[],
        longest: 1024,
    },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Where the inputs of a target lie that were once findings.
pub fn corpus(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}
