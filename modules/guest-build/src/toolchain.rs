//! Finding a toolchain that can build for WebAssembly.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, standard};

/// The guests' target. Not `wasm32-wasip2`: its standard library imports WASI, which no agent offers.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// A compiler and a cargo that can build for [`TARGET`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    rustc: PathBuf,
    cargo: PathBuf,
    std: Std,
}

/// Where the standard library comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Std {
    /// It is installed for the target.
    Installed,
    /// It is built from its sources, and linked by this linker.
    FromSource(PathBuf),
}

/// Nothing here can build for WebAssembly.
#[derive(Debug, thiserror::Error)]
#[error(
    "no Rust toolchain here can build for wasm32-unknown-unknown: run `rustup target add wasm32-unknown-unknown`; or on Debian `apt-get install rustc-web cargo-web rust-web-src` (and lld where rustup's is missing); or set AETHER_MODULES_DIR to a directory of prebuilt components"
)]
pub struct ToolchainError;

impl Toolchain {
    /// Finds one: the running toolchain, the one on the path, the distribution's.
    pub fn find() -> Result<Self, ToolchainError> {
        let named = |rustc: &str, cargo: &str| {
            let program = |variable: &str, name: &str| {
                std::env::var_os(variable).map_or_else(|| PathBuf::from(name), PathBuf::from)
            };
            if rustc.is_empty() {
                (program("RUSTC", "rustc"), program("CARGO", "cargo"))
            } else {
                (PathBuf::from(rustc), PathBuf::from(cargo))
            }
        };
        let all = [named("", ""), named("rustc", "cargo"), named("/usr/bin/rustc", "/usr/bin/cargo")];
        let rooted: Vec<_> =
            all.into_iter().filter_map(|(rustc, cargo)| Some((sysroot(&rustc)?, rustc, cargo))).collect();
        let installed = rooted.iter().find(|(root, ..)| has_target(root));
        if let Some((_, rustc, cargo)) = installed {
            return Ok(Self { rustc: rustc.clone(), cargo: cargo.clone(), std: Std::Installed });
        }
        let linker = rooted.iter().find_map(|(root, rustc, _)| rust_lld(root, rustc));
        let linker = linker.or_else(|| Some(PathBuf::from("/usr/bin/wasm-ld")).filter(|path| path.is_file()));
        let sources = rooted.iter().find(|(root, ..)| has_sources(root));
        match (sources, linker) {
            (Some((_, rustc, cargo)), Some(linker)) => {
                Ok(Self { rustc: rustc.clone(), cargo: cargo.clone(), std: Std::FromSource(linker) })
            }
            _ => Err(ToolchainError),
        }
    }

    /// A cargo for guests, to which a command with its own options is added first: `build`, say. A standard library that
    /// has to be built is built once, and kept in `shared`.
    pub(crate) fn cargo(&self, shared: &Path) -> Result<Command, BuildError> {
        let mut cargo = self.bare();
        if let Std::FromSource(_) = &self.std {
            let version = output(&self.rustc, &["--version"]).ok_or(ToolchainError)?;
            let sysroot = standard::sysroot(shared, &version, self.bare())?;
            // Only the guests' own code is built with these flags, since a target is named.
            cargo.env("CARGO_ENCODED_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
        }
        Ok(cargo)
    }

    fn bare(&self) -> Command {
        let mut cargo = Command::new(&self.cargo);
        // What the outer cargo set is about the host's build.
        for (key, _) in std::env::vars_os() {
            if key.to_str().is_some_and(is_of_the_outer_build) {
                cargo.env_remove(&key);
            }
        }
        cargo.env("RUSTC", &self.rustc).env("CARGO_BUILD_TARGET", TARGET);
        if let Std::FromSource(linker) = &self.std {
            cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        cargo
    }
}

fn is_of_the_outer_build(key: &str) -> bool {
    const KEPT: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_NET_OFFLINE",
        "CARGO_HTTP_CAINFO",
        "CARGO_HTTP_PROXY",
        "RUSTUP_HOME",
        "CARGO_REGISTRIES",
    ];
    const OTHERS: [&str; 9] =
        ["TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS", "OUT_DIR", "MAKEFLAGS", "MFLAGS"];
    let of_cargo = (key.starts_with("CARGO") || key.starts_with("RUST"))
        && !KEPT.iter().any(|kept| key.starts_with(kept));
    of_cargo || OTHERS.contains(&key)
}

fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    output(rustc, &["--print", "sysroot"]).map(PathBuf::from)
}

fn has_target(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root.join("lib/rustlib").join(TARGET).join("lib")) else {
        return false;
    };
    entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
}

fn has_sources(root: &Path) -> bool {
    root.join("lib/rustlib/src/rust/library/std/Cargo.toml").is_file()
}

fn rust_lld(root: &Path, rustc: &Path) -> Option<PathBuf> {
    let version = output(rustc, &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(root.join("lib/rustlib").join(host).join("bin/rust-lld")).filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_outer_cargo_sets_does_not_reach_the_guests_build() {
        for key in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC",
            "CARGO_PKG_NAME",
            "OUT_DIR",
            "TARGET",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(is_of_the_outer_build(key), "{key}");
        }
        for key in ["CARGO_HOME", "RUSTUP_HOME", "PATH", "HOME", "CARGO_REGISTRIES_X_INDEX"] {
            assert!(!is_of_the_outer_build(key), "{key}");
        }
    }
}
