//! `aetherctl policy new`: the template, which is also what the tests build.

use std::path::Path;

use aether_durable::atomic;
use anyhow::{Context as _, bail};

use super::build::write;

/// Where the SDK's source is, for an aetherctl that was built from it.
pub(super) const SDK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../modules/sdk");

/// The template's files; `NAME` and `SDK` in them are replaced.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../../template/Cargo.toml.in")),
    ("src/lib.rs", include_str!("../../template/src/lib.rs.in")),
    ("module.toml", include_str!("../../template/module.toml")),
    ("scenarios/denied.toml", include_str!("../../template/scenarios/denied.toml")),
    ("scenarios/admitted.toml", include_str!("../../template/scenarios/admitted.toml")),
    ("README.md", include_str!("../../template/README.md")),
    (".gitignore", "target\nmodule.wasm\n"),
];

/// Makes the directory, and says what to do next.
pub(super) fn make(directory: &Path, sdk: &Path) -> anyhow::Result<String> {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = aether_module_host::manifest::Name::try_from(name.to_owned())
        .map_err(anyhow::Error::msg)
        .context("the directory's name is the policy's name")?;
    if directory.exists() {
        bail!("{} is there already; name another directory", directory.display());
    }
    let sdk = sdk
        .canonicalize()
        .with_context(|| format!("the module SDK is not in {}; name its source with --sdk", sdk.display()))?;
    let directory = std::path::absolute(directory).context("cannot tell the current directory")?;
    for (file, text) in FILES {
        let text = text.replace("{{NAME}}", name.as_str()).replace("{{SDK}}", &sdk.display().to_string());
        let path = directory.join(file);
        atomic::create_dir_all(path.parent().unwrap_or(&directory), 0o755)?;
        write(&path, text.as_bytes())?;
    }
    Ok(format!(
        "made {}; next:\n\n  cd {}\n  aetherctl policy test\n",
        directory.display(),
        directory.display()
    ))
}
