//! The pinned tools of the tests, from `tests/tools/tools.toml`, built once into `target/tools`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Parser;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::run;

/// What `tools` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Those too that only `bench ... --peers` runs: Istio's and Cilium's, some minutes.
    #[arg(long)]
    peers: bool,
}

/// Builds what is asked for.
pub(crate) fn run(args: &Args) -> Result<()> {
    build_all()?;
    if args.peers { build_for(For::Peers) } else { Ok(()) }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    tool: Vec<Recipe>,
}

/// One module under `tests/tools` and what to build from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// The folder below `target/tools` that gets the binaries.
    name: String,
    /// The folder below `tests/tools`.
    module: String,
    /// What it is, for the progress line.
    about: String,
    /// Go's build tags.
    #[serde(default)]
    tags: Vec<String>,
    /// Go's linker flags.
    #[serde(default)]
    ldflags: String,
    /// Go package by binary name.
    #[serde(default)]
    packages: BTreeMap<String, String>,
    /// C source by binary name.
    #[serde(default)]
    sources: BTreeMap<String, String>,
    /// Who needs it.
    #[serde(default, rename = "for")]
    needed: For,
}

/// Who needs a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum For {
    /// The tests.
    #[default]
    Tests,
    /// Measurements beside others' programs: large, and built only when they are asked for.
    Peers,
}

/// Builds what the tests need and is missing or stale.
pub(crate) fn build_all() -> Result<()> {
    build_for(For::Tests)
}

/// Builds what these need and is missing or stale.
pub(crate) fn build_for(needed: For) -> Result<()> {
    recipes()?.iter().filter(|recipe| recipe.needed == needed).try_for_each(one)
}

/// Builds what is missing or stale of these.
pub(crate) fn build(names: &[&str]) -> Result<()> {
    recipes()?.iter().filter(|recipe| names.contains(&recipe.name.as_str())).try_for_each(one)
}

fn recipes() -> Result<Vec<Recipe>> {
    let file = run::root().join("tests/tools/tools.toml");
    let text = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let recipes: Recipes = toml::from_str(&text).with_context(|| format!("parse {}", file.display()))?;
    Ok(recipes.tool)
}

fn one(recipe: &Recipe) -> Result<()> {
    let module = run::root().join("tests/tools").join(&recipe.module);
    let out = run::target("tools").join(&recipe.name);
    let stamp_file = run::target("tools").join(format!(".stamp-{}", recipe.module.replace('/', "-")));
    let stamp = fingerprint(&module, recipe)?;
    let complete = recipe.packages.keys().chain(recipe.sources.keys()).all(|name| out.join(name).is_file());
    if complete && std::fs::read_to_string(&stamp_file).ok().as_deref() == Some(&stamp) {
        return Ok(());
    }
    std::fs::create_dir_all(&out)?;
    for (name, package) in &recipe.packages {
        run::step(
            &format!("build {name}: {} (pinned in tests/tools/{})", recipe.about, recipe.module),
            || run::check(go(recipe, &module).arg("-o").arg(out.join(name)).arg(package)),
        )?;
    }
    for (name, source) in &recipe.sources {
        run::step(&format!("build {name}: {}", recipe.about), || {
            let mut cc = Command::new("cc");
            cc.args(["-static", "-Os", "-s", "-Wall", "-Wextra", "-o"])
                .arg(out.join(name))
                .arg(module.join(source));
            run::check(&mut cc)
        })?;
    }
    std::fs::write(&stamp_file, stamp).with_context(|| format!("write {}", stamp_file.display()))
}

fn go(recipe: &Recipe, module: &Path) -> Command {
    let mut go = Command::new("go");
    go.current_dir(module).env("CGO_ENABLED", "0").env("GOWORK", "off").args(["build", "-trimpath"]);
    go.arg("-ldflags").arg(&recipe.ldflags);
    if !recipe.tags.is_empty() {
        go.arg("-tags").arg(recipe.tags.join(" "));
    }
    go
}

/// What the result depends on: the module's files and the recipe.
fn fingerprint(module: &Path, recipe: &Recipe) -> Result<String> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(module)
        .with_context(|| format!("read {}", module.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    let mut hash = Sha256::new();
    hash.update(format!("{recipe:?}"));
    for file in files.iter().filter(|file| file.is_file()) {
        hash.update(std::fs::read(file)?);
    }
    Ok(format!("{:x?}", hash.finalize().as_slice()))
}
