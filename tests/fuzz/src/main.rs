//! `aether-fuzz DIR`: writes each target's seeds to `DIR/<target>/seeds/` and its words to `DIR/<target>/words`, and
//! prints a line a target: its name, the longest input, what it checks.
#![allow(clippy::print_stdout, reason = "xtask reads the list of targets from here")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aether_fuzz::TARGETS;
use anyhow::{Context as _, Result};

fn main() -> Result<()> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from).context("usage: aether-fuzz DIR")?;
    for target in &TARGETS {
        let own = directory.join(target.name);
        write(&own.join("seeds"), &(target.seeds)()?).context("write the seeds")?;
        std::fs::write(own.join("words"), words(target.words)).context("write the words")?;
        println!("{}\t{}\t{}", target.name, target.longest, target.about);
    }
    Ok(())
}

fn write(directory: &Path, seeds: &[Vec<u8>]) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(directory.join(format!("{number:03}")), seed)?;
    }
    Ok(())
}

/// libFuzzer's form of a dictionary: one quoted word a line, every byte as `\xNN`.
fn words(words: &[&str]) -> String {
    let mut text = String::new();
    for word in words {
        text.push('"');
        for byte in word.bytes() {
            let _ = write!(text, "\\x{byte:02x}");
        }
        text.push_str("\"\n");
    }
    text
}
