//! Builds guests and makes components of them, from a build script or by hand.
//!
//! It works with a toolchain that has `wasm32-unknown-unknown` (`rustup target add`) and with one that has only the
//! standard library's sources (Debian's `rustc-web`, `cargo-web` and `rust-web-src`).

pub mod c;
mod standard;
mod toolchain;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use toolchain::{TARGET, Toolchain, ToolchainError};

/// The directory of components that were built elsewhere: taken in place of building.
pub const PREBUILT: &str = "AETHER_MODULES_DIR";
/// The profile of guests in the workspace.
pub const PROFILE: &str = "guest";

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Nothing here can build for WebAssembly.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// Nothing here can build C for WebAssembly.
    #[error(
        "a policy in C is built by clang and wasm-ld, which are not on the path: on Debian `apt-get install clang lld`"
    )]
    Clang,
    /// The guest does not build.
    #[error("`{command}` failed: {why}")]
    Cargo {
        /// What was run.
        command: String,
        /// How it ended.
        why: String,
    },
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file or directory cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The module is no guest of the contract.
    #[error("no component can be made of {what}: {why}")]
    Component {
        /// What it was to be made of.
        what: String,
        /// Why.
        why: String,
    },
}

/// The components of packages of our own workspace at `workspace`, in order: prebuilt ones where [`PREBUILT`] names a
/// directory, else built in `target`, which must not be the directory of a cargo that waits for this.
pub fn components(workspace: &Path, target: &Path, packages: &[&str]) -> Result<Vec<Vec<u8>>, BuildError> {
    match std::env::var_os(PREBUILT) {
        Some(directory) => taken(Path::new(&directory), packages),
        None => build(workspace, target, target, packages),
    }
}

/// The prebuilt components in `directory`.
fn taken(directory: &Path, packages: &[&str]) -> Result<Vec<Vec<u8>>, BuildError> {
    packages.iter().map(|package| read(&prebuilt(directory, package))).collect()
}

/// Builds packages of any workspace in `target` and gives back each one's component, in order. `shared` is where a
/// standard library that has to be built is looked for, and kept for others.
pub fn build(
    workspace: &Path,
    target: &Path,
    shared: &Path,
    packages: &[&str],
) -> Result<Vec<Vec<u8>>, BuildError> {
    let mut cargo = Toolchain::find()?.cargo(shared)?;
    cargo.current_dir(workspace).env("CARGO_TARGET_DIR", target).args(["build", "--profile", PROFILE]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    run(&mut cargo)?;
    let built = |package: &&str| {
        let name = format!("{}.wasm", package.replace('-', "_"));
        let path = target.join(TARGET).join(PROFILE).join(name);
        component(package, &read(&path)?)
    };
    packages.iter().map(built).collect()
}

/// Makes a component of a core module that was built against the contract.
pub fn component(what: &str, core: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encoder = wit_component::ComponentEncoder::default().validate(true);
    encoder
        .module(core)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| BuildError::Component { what: what.to_owned(), why: format!("{error:#}") })
}

/// Where a component of this package lies among prebuilt ones: `aether-taint-gate` is `taint-gate.wasm`.
fn prebuilt(directory: &Path, package: &str) -> PathBuf {
    directory.join(format!("{}.wasm", package.strip_prefix("aether-").unwrap_or(package)))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    std::fs::read(path).map_err(|source| BuildError::Read { path: path.to_owned(), source })
}

pub(crate) fn run(command: &mut Command) -> Result<(), BuildError> {
    let shown = format!("{command:?}");
    let failed = |why: String| BuildError::Cargo { command: shown.clone(), why };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prebuilt_components_are_named_by_their_module() {
        let path = prebuilt(Path::new("/m"), "aether-taint-gate");
        assert_eq!(path, Path::new("/m/taint-gate.wasm"));
    }

    #[test]
    fn m09_prebuilt_components_are_taken_as_they_are_and_one_that_is_missing_is_named() {
        let directory = std::env::temp_dir().join(format!("aether-prebuilt-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("taint-gate.wasm"), b"component").unwrap();
        assert_eq!(taken(&directory, &["aether-taint-gate"]).unwrap(), [b"component"]);
        let error = taken(&directory, &["aether-taint-gate", "aether-upstream-flush"]).unwrap_err();
        assert!(error.to_string().ends_with("upstream-flush.wasm"), "{error}");
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_no_guest_is_named() {
        let error = component("x", b"text").unwrap_err().to_string();
        assert!(error.contains("no component can be made of x"), "{error}");
    }
}
