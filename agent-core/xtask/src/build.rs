//! The binaries that a node runs, in `target/bin`.

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

/// How much the plugin's build may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plugin {
    /// Static, without fat LTO: for tests and `up`.
    Quick,
    /// As it ships (`--profile tiny`): for `bench`.
    Tiny,
}

/// Builds everything into `target/bin`.
pub(crate) fn binaries() -> Result<()> {
    run::step("build agent, installer, aetherctl and the node harness", || {
        let mut cargo = run::cargo();
        cargo.arg("build");
        for (package, _) in NODE {
            cargo.args(["--package", package]);
        }
        run::check(&mut cargo)
    })?;
    let out = target_dir()?;
    for (_, name) in NODE {
        put(&out.join("debug").join(name), name)?;
    }
    plugin(Plugin::Quick)
}

/// Builds the static plugin (K13) on its own, so that no other package's features are unified into it.
pub(crate) fn plugin(how: Plugin) -> Result<()> {
    let profile = match how {
        Plugin::Quick => "release",
        Plugin::Tiny => "tiny",
    };
    let triple = host_triple()?;
    run::step(&format!("build the static plugin (profile {profile})"), || {
        run::check(
            run::cargo()
                // With --target, the flags do not reach build scripts and procedural macros, which cannot be static.
                .env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+crt-static\x1f-Crelocation-model=static")
                .args(["build", "--package", "aether-cni", "--profile", profile, "--target", &triple]),
        )
    })?;
    let built = target_dir()?.join(triple).join(profile).join("aether-cni");
    match how {
        Plugin::Quick => put(&built, "aether-cni"),
        Plugin::Tiny => put(&built, "tiny/aether-cni"),
    }
}

fn put(from: &Path, name: &str) -> Result<()> {
    let to = run::target("bin").join(name);
    let directory = to.parent().context("a path below target/bin")?;
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

fn host_triple() -> Result<String> {
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
