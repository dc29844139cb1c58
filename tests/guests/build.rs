//! Builds the guests that the tests load.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Packages, and where their sources are.
const GUESTS: [(&str, &str, &str); 6] = [
    ("HOSTILE", "aether-hostile-guest", "tests/guests/hostile"),
    ("ROGUE_LIST", "aether-rogue-list", "tests/guests/rogue-list"),
    ("ROGUE_TAINT", "aether-rogue-taint", "tests/guests/rogue-taint"),
    ("REQUIRE_ANNOTATION", "aether-example-require-annotation", "modules/examples/require-annotation"),
    ("REFUSE_HOST_PORTS", "aether-example-refuse-host-ports", "modules/examples/refuse-host-ports"),
    ("NAMESPACE_LIST", "aether-example-namespace-list", "modules/examples/namespace-list"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for path in ["wit", "modules/sdk/src"].into_iter().chain(GUESTS.map(|(.., path)| path)) {
        println!("cargo::rerun-if-changed={}", workspace.join(path).display());
    }
    println!("cargo::rerun-if-env-changed={}", aether_guest_build::PREBUILT);
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let target = out.ancestors().nth(4).ok_or("OUT_DIR is below the target directory")?.join("guests");
    let packages = GUESTS.map(|(_, package, _)| package);
    let components = aether_guest_build::components(&workspace, &target, &packages)?;
    let mut list = String::new();
    for ((constant, package, _), component) in GUESTS.iter().zip(&components) {
        let path = out.join(format!("{package}.wasm"));
        std::fs::write(&path, component)?;
        writeln!(
            list,
            "/// The component of `{package}`.\npub const {constant}: &[u8] = include_bytes!(r#\"{}\"#);",
            path.display()
        )?;
    }
    std::fs::write(out.join("guests.rs"), list)?;
    Ok(())
}
