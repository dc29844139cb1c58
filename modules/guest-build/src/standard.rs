//! The standard library for guests, where a toolchain has only its sources: built once for each compiler, into a sysroot
//! that every build of guests names.

use std::path::{Path, PathBuf};

use crate::BuildError;
use crate::toolchain::TARGET;

/// A crate that holds nothing: building it builds the library. Bitcode is kept beside the code, since guests are optimised
/// as a whole.
const MANIFEST: &str = r#"[package]
name = "nothing"
version = "0.0.0"
edition = "2021"

[profile.release]
opt-level = "s"
codegen-units = 1
panic = "abort"

[workspace]
"#;
const SOURCE: &str = "#![no_std]\n";
/// What cargo says about bitcode comes before this, and the last one counts.
const FLAGS: &str = "-Cembed-bitcode=yes";

/// The sysroot below `shared` for the compiler of this version; built if it is not there. Others who want the same one
/// wait. `build` is a cargo to which the command is added.
pub(crate) fn sysroot(
    shared: &Path,
    version: &str,
    mut build: std::process::Command,
) -> Result<PathBuf, BuildError> {
    let place = |path: &Path, source| BuildError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(shared).map_err(|source| place(shared, source))?;
    let shared = shared.canonicalize().map_err(|source| place(shared, source))?;
    let sysroot = shared.join(name(version));
    let lock = shared.join("std.lock");
    let lock = std::fs::File::create(&lock)
        .and_then(|file| file.lock().map(|()| file))
        .map_err(|source| place(&lock, source))?;
    if !sysroot.is_dir() {
        let work = shared.join("std.building");
        let made = make(&work, &mut build)?;
        std::fs::rename(&made, &sysroot).map_err(|source| place(&sysroot, source))?;
        // What is left is only space on the disk, and the next build's to remove.
        let _ = std::fs::remove_dir_all(&work);
    }
    drop(lock);
    Ok(sysroot)
}

/// Builds in `work` and returns the new sysroot there.
fn make(work: &Path, build: &mut std::process::Command) -> Result<PathBuf, BuildError> {
    let place = |source| BuildError::Write { path: work.to_owned(), source };
    if work.exists() {
        std::fs::remove_dir_all(work).map_err(place)?;
    }
    std::fs::create_dir_all(work.join("src")).map_err(place)?;
    std::fs::write(work.join("Cargo.toml"), MANIFEST).map_err(place)?;
    std::fs::write(work.join("src/lib.rs"), SOURCE).map_err(place)?;
    let target = work.join("target");
    build
        .current_dir(work)
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS)
        .env("CARGO_UNSTABLE_BUILD_STD", "std,panic_abort")
        .args(["build", "--release"]);
    crate::run(build)?;
    let sysroot = work.join("sysroot");
    let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    std::fs::create_dir_all(&libraries).map_err(place)?;
    let crates = target.join(TARGET).join("release/deps");
    for entry in std::fs::read_dir(&crates).map_err(place)? {
        let path = entry.map_err(place)?.path();
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|ending| ending == "rlib") && !file.starts_with("libnothing-") {
            std::fs::rename(&path, libraries.join(file)).map_err(place)?;
        }
    }
    Ok(sysroot)
}

/// The folder's name: what the compiler says of itself, as far as a file name holds it.
fn name(version: &str) -> String {
    let words = version.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("std-{}", words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compiler_has_a_library_of_its_own() {
        let debian = name("rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)");
        assert_eq!(debian, "std-rustc-1.96.0-ac68faa20-2026-05-25-built-from-a-source-tarball");
        assert_ne!(debian, name("rustc 1.96.1 (ac68faa21 2026-06-25) (built from a source tarball)"));
    }
}
