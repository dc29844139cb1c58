//! `cargo deny`, installed once into `target/tools` where the machine has none.

use anyhow::{Context as _, Result};

use crate::run;

/// The pinned version.
const VERSION: &str = "0.20.2";

/// Whether the advisory database may be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Network {
    /// It may not: everything but the advisories.
    Offline,
    /// It may.
    Online,
}

/// Checks bans, licences and sources; advisories too when the network may be used.
pub(crate) fn check(network: Network) -> Result<()> {
    let place = run::target("tools").join("cargo-deny");
    if !run::on_path("cargo-deny") && !place.join("bin/cargo-deny").exists() {
        run::step("install cargo-deny (once, some minutes)", || {
            let mut cargo = run::cargo();
            cargo
                .args(["install", "cargo-deny", "--locked", "--quiet", "--version", VERSION, "--root"])
                .arg(&place);
            run::check(&mut cargo).context("`cargo install cargo-deny` by hand is the remedy")
        })?;
    }
    let mut path = vec![place.join("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut cargo = run::cargo();
    cargo.env("PATH", std::env::join_paths(path)?).args([
        "deny",
        "--log-level",
        "warn",
        "check",
        "bans",
        "licenses",
        "sources",
    ]);
    if network == Network::Online {
        cargo.arg("advisories");
    }
    run::check(&mut cargo)
}
