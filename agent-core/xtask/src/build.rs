//! The binaries that a node runs, in `target/bin`.

pub(crate) mod probe;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::run;

/// Packages whose binaries go to a node, and the names of these. The dev profile: tests share its dependencies.
const NODE: [(&str, &str); 4] = [
    ("aether-agent", "aether-agent"),
    ("aether-cni-install", "aether-cni-install"),
    ("aetherctl", "aetherctl"),
    ("aether-harness", "aether-node"),
];

/// The compiler of modules: a package of its own, and built apart as it ships, so that its features are not the agent's.
const COMPILER: (&str, &str) = ("aether-modc", "aether-modc");

/// Policies that `up` and the tests on a node put into the operator's directory: package, and the file's name.
const POLICIES: [(&str, &str); 3] = [
    ("aether-example-require-annotation", "require-annotation.wasm"),
    ("aether-example-namespace-list", "namespace-list.wasm"),
    ("aether-example-refuse-host-ports", "refuse-host-ports.wasm"),
];

/// The one that is written in C: its directory, and the file's name.
const POLICY_IN_C: (&str, &str) = ("dual-stack", "dual-stack.wasm");

/// What makes of the agent one that knows no hand-over, as one of the past (T06), and the file's name.
const WITHOUT_HANDOVER: &str = "aether-agent/without-handover";
const PAST_AGENT: &str = "aether-agent-without-handover";

/// How much a build may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// For tests and `up`: the dev profile, and the plugin static without fat LTO. Into `target/bin`.
    Quick,
    /// As it ships, for `bench`: release, and the plugin with `--profile tiny`. Into `target/ship`.
    Ship,
}

impl Build {
    /// Where the binaries go.
    pub(crate) fn directory(self) -> std::path::PathBuf {
        run::target(match self {
            Self::Quick => "bin",
            Self::Ship => "ship",
        })
    }
}

/// Builds everything into the build's directory.
pub(crate) fn binaries(how: Build) -> Result<()> {
    let node = NODE.map(|(package, _)| package);
    match how {
        Build::Quick => {
            let all = [node.as_slice(), &[COMPILER.0]].concat();
            run::step("build an agent of the past, without the hand-over", || {
                compile(how, &all, &[WITHOUT_HANDOVER])?;
                put(&target_dir()?.join("debug/aether-agent"), &how.directory(), PAST_AGENT)
            })?;
            run::step("build agent, compiler of modules, installer, aetherctl and the node harness", || {
                compile(how, &all, &[])
            })?;
        }
        Build::Ship => {
            run::step("build agent, installer, aetherctl and the node harness, as they ship", || {
                compile(how, &node, &[])
            })?;
            run::step("build the compiler of modules, as it ships", || compile(how, &[COMPILER.0], &[]))?;
        }
    }
    let out = target_dir()?.join(if how == Build::Ship { "release" } else { "debug" });
    for (_, name) in NODE.iter().chain([&COMPILER]) {
        put(&out.join(name), &how.directory(), name)?;
    }
    policies(how)?;
    probe::build(how)?;
    plugin(how)
}

/// Builds packages with one set of features for all of them.
fn compile(how: Build, packages: &[&str], features: &[&str]) -> Result<()> {
    let mut cargo = run::cargo();
    cargo.arg("build");
    if how == Build::Ship {
        cargo.arg("--release");
    }
    for package in packages {
        cargo.args(["--package", package]);
    }
    if !features.is_empty() {
        cargo.arg("--features").arg(features.join(","));
    }
    run::check(&mut cargo)
}

/// Builds the example policies as an operator would.
fn policies(how: Build) -> Result<()> {
    let packages = POLICIES.map(|(package, _)| package);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut components = Vec::new();
    run::step("build the example policies", || {
        components = aether_guest_build::components(&workspace, &target_dir()?.join("guests"), &packages)?;
        Ok(())
    })?;
    for ((_, name), component) in POLICIES.iter().zip(components) {
        write(&component, &how.directory(), name)?;
    }
    let (directory, name) = POLICY_IN_C;
    let component = aether_guest_build::c::policy(
        &workspace.join("modules/examples").join(directory),
        &target_dir()?.join("guests/c").join(directory),
    )?;
    write(&component, &how.directory(), name)
}

/// Builds the static plugin (K13) on its own, so that no other package's features are unified into it.
fn plugin(how: Build) -> Result<()> {
    let profile = match how {
        Build::Quick => "release",
        Build::Ship => "tiny",
    };
    let triple = host_triple()?;
    run::step(&format!("build the static plugin (profile {profile})"), || {
        run::check(
            run::cargo()
                // These would take the place of the flags in static.toml.
                .env_remove("RUSTFLAGS")
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                // With --target, the flags do not reach build scripts and procedural macros, which cannot be static.
                .args(["build", "--package", "aether-cni", "--profile", profile, "--target", &triple])
                .args(["--config", "cni-plugin/static.toml"]),
        )
    })?;
    let built = target_dir()?.join(triple).join(profile).join("aether-cni");
    put(&built, &how.directory(), "aether-cni")
}

fn write(bytes: &[u8], directory: &Path, name: &str) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    let to = directory.join(name);
    std::fs::write(&to, bytes).with_context(|| format!("write {}", to.display()))
}

fn put(from: &Path, directory: &Path, name: &str) -> Result<()> {
    let to = directory.join(name);
    std::fs::create_dir_all(directory)?;
    if std::fs::read(&to).ok()
        == Some(std::fs::read(from).with_context(|| format!("read {}", from.display()))?)
    {
        return Ok(());
    }
    // Beside and renamed: the old one may be running.
    let temp = to.with_extension("new");
    std::fs::copy(from, &temp).with_context(|| format!("copy {} to {}", from.display(), temp.display()))?;
    std::fs::rename(&temp, &to).with_context(|| format!("rename to {}", to.display()))
}

/// The triple that the running compiler builds for.
pub(crate) fn host_triple() -> Result<String> {
    let version = run::output(std::process::Command::new("rustc").arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("`rustc -vV` names no host")?.to_owned())
}

fn target_dir() -> Result<std::path::PathBuf> {
    let metadata: serde_json::Value = serde_json::from_str(&run::output(run::cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?)?;
    Ok(metadata
        .get("target_directory")
        .and_then(|dir| dir.as_str())
        .context("cargo metadata names no target")?
        .into())
}
