//! Builds the built-in modules, makes components of them and compiles these for the target: the agent has no compiler.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aether_domain::text::sha256;
use aether_module_host::engine::compile;

/// The modules, by name.
const MODULES: [&str; 3] = ["conflist-reassert", "taint-gate", "upstream-flush"];

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Never a directory that holds a target: it would be built again each time.
    for path in ["wit", "agent-core/conflist/src", "modules/sdk/src"] {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    for module in MODULES {
        for path in ["src", "module.toml", "Cargo.toml"] {
            println!(
                "cargo::rerun-if-changed={}",
                workspace.join("modules").join(module).join(path).display()
            );
        }
    }
    println!("cargo::rerun-if-env-changed={}", aether_guest_build::PREBUILT);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let target = out.ancestors().nth(4).ok_or("OUT_DIR is below the target directory")?.join("guests");
    let packages: Vec<String> = MODULES.iter().map(|module| format!("aether-{module}")).collect();
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let components = aether_guest_build::components(&workspace, &target, &packages)?;
    let triple = std::env::var("TARGET")?;
    let mut list = String::from("&[\n");
    for (module, component) in MODULES.iter().zip(&components) {
        let artefact = out.join(format!("{module}.cwasm"));
        std::fs::write(out.join(format!("{module}.wasm")), component)?;
        std::fs::write(&artefact, compile::component(component, &triple)?)?;
        let manifest = workspace.join("modules").join(module).join("module.toml").canonicalize()?;
        let digest = sha256(component);
        let (manifest, artefact) = (manifest.display(), artefact.display());
        writeln!(
            list,
            "Module {{ name: {module:?}, digest: {digest:?}, manifest: include_str!(r#\"{manifest}\"#), artefact: include_bytes!(r#\"{artefact}\"#) }},",
        )?;
    }
    list.push(']');
    std::fs::write(out.join("builtins.rs"), list)?;
    Ok(())
}
