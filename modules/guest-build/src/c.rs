//! Policies in C: built by clang against `modules/sdk-c`, which this holds a copy of.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{BuildError, component, read, run};

/// The file that makes a directory one of these.
pub const SOURCE: &str = "policy.c";

/// What a policy is built with; sources are told by their ending.
const SDK: [(&str, &[u8]); 6] = [
    ("pod_policy.c", include_bytes!("../../sdk-c/pod_policy.c")),
    ("pod_policy.h", include_bytes!("../../sdk-c/pod_policy.h")),
    ("pod_policy_component_type.o", include_bytes!("../../sdk-c/pod_policy_component_type.o")),
    ("libc/libc.c", include_bytes!("../../sdk-c/libc/libc.c")),
    ("libc/stdlib.h", include_bytes!("../../sdk-c/libc/stdlib.h")),
    ("libc/string.h", include_bytes!("../../sdk-c/libc/string.h")),
];

/// How it is built: for the target without a system, small, and linked by `wasm-ld`, which is clang's default there.
const FLAGS: [&str; 9] = [
    "--target=wasm32-unknown-unknown",
    "-std=c11",
    "-Os",
    "-Wall",
    "-Wextra",
    "-ffreestanding",
    "-nostdlib",
    "-mbulk-memory",
    "-Wl,--no-entry,--gc-sections,--stack-first,-z,stack-size=65536",
];

/// Builds the policy in `directory` and gives back its component. Works in `target`.
pub fn policy(directory: &Path, target: &Path) -> Result<Vec<u8>, BuildError> {
    let sdk = target.join("sdk-c");
    let mut clang = Command::new("clang");
    clang.args(FLAGS).arg("-I").arg(sdk.join("libc")).arg("-I").arg(&sdk);
    for (name, bytes) in SDK {
        let path = sdk.join(name);
        write(&path, bytes)?;
        if path.extension().is_some_and(|ending| ending == "c" || ending == "o") {
            clang.arg(path);
        }
    }
    let core = target.join("policy.wasm");
    clang.arg(directory.join(SOURCE)).arg("-o").arg(&core);
    if !on_path("clang") || !on_path("wasm-ld") {
        return Err(BuildError::Clang);
    }
    run(&mut clang)?;
    component(&directory.display().to_string(), &read(&core)?)
}

fn write(path: &PathBuf, bytes: &[u8]) -> Result<(), BuildError> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, bytes))
        .map_err(|source| BuildError::Write { path: path.clone(), source })
}

fn on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}
