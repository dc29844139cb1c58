//! From a crate, or a core module, to the component that an agent takes.

use std::path::{Path, PathBuf};

use aether_domain::text::sha256;
use aether_durable::Attributes;
use aether_durable::atomic;
use aether_guest_build::c;
use anyhow::{Context as _, bail};

/// The component's file in a policy's directory.
pub(super) const COMPONENT: &str = "module.wasm";
const MODE: u32 = 0o644;
/// What a component's layer field is; a core module has 0 there.
const COMPONENT_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

/// Makes the component and says where it is.
pub(super) fn pack(from: &Path, to: Option<PathBuf>) -> anyhow::Result<String> {
    let (component, beside) = if from.is_dir() {
        (
            of_sources(from)?
                .with_context(|| format!("{} holds no Cargo.toml and no {}", from.display(), c::SOURCE))?,
            from.join(COMPONENT),
        )
    } else {
        let bytes = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        if bytes.starts_with(&COMPONENT_MAGIC) {
            bail!("{} is a component already; copy it as it is", from.display());
        }
        let component = aether_guest_build::component(&from.display().to_string(), &bytes)?;
        (component, from.with_file_name(COMPONENT))
    };
    let to = to.unwrap_or(beside);
    write(&to, &component)?;
    Ok(format!("{}: {} bytes, sha256 {}\n", to.display(), component.len(), sha256(&component)))
}

/// Builds what a directory holds the sources of: a crate, or a policy in C. `None` where it holds neither.
pub(super) fn of_sources(directory: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if directory.join("Cargo.toml").is_file() {
        return of_crate(directory).map(Some);
    }
    if directory.join(c::SOURCE).is_file() {
        return Ok(Some(c::policy(directory, &directory.join("target"))?));
    }
    Ok(None)
}

fn of_crate(directory: &Path) -> anyhow::Result<Vec<u8>> {
    let manifest = directory.join("Cargo.toml");
    let text =
        std::fs::read_to_string(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let table: toml::Table =
        text.parse().with_context(|| format!("cannot make sense of {}", manifest.display()))?;
    let package = table.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str);
    let package = package.with_context(|| format!("{} names no package", manifest.display()))?;
    let directory = std::path::absolute(directory).context("cannot tell the current directory")?;
    let target = directory.join("target");
    let shared = shared().unwrap_or_else(|| target.join("shared"));
    let built = aether_guest_build::build(&directory, &target, &shared, &[package])?;
    built.into_iter().next().context("the build made nothing")
}

/// Where the standard library for policies is kept, on a machine that has to build it: beside the build that this program
/// is from, which has made it already, or in the user's cache. Never in the directory for temporary files: it is built there
/// by programs that somebody else could have put there.
fn shared() -> Option<PathBuf> {
    let program = std::env::current_exe().ok();
    let of_our_build =
        program.as_deref().and_then(|program| Some(program.parent()?.parent()?.join("guests")));
    if let Some(guests) = of_our_build.filter(|guests| guests.is_dir()) {
        return Some(guests);
    }
    let folder =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    cache.map(|cache| cache.join("aether-policy"))
}

pub(super) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let path = std::path::absolute(path).context("cannot tell the current directory")?;
    atomic::replace(&path, bytes, &Attributes::with_mode(MODE))?;
    Ok(())
}
