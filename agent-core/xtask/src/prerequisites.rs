//! What a machine must have, with the remedy for each: Rust and Go are checked, Debian's packages installed.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::run;

/// The Go that the pinned tools need.
const GO: (u32, u32) = (1, 26);

/// Debian's packages, each with a file that shows that it is there.
const PACKAGES: [(&str, &str); 10] = [
    ("containerd", "/usr/bin/containerd"),
    ("runc", "/usr/sbin/runc"),
    ("containernetworking-plugins", "/usr/lib/cni/portmap"),
    ("iproute2", "/usr/sbin/ip"),
    ("iptables", "/usr/sbin/iptables"),
    ("strace", "/usr/bin/strace"),
    ("e2fsprogs", "/usr/bin/chattr"),
    ("gcc", "/usr/bin/gcc"),
    // For the example policy in C.
    ("clang", "/usr/bin/clang"),
    ("lld", "/usr/bin/wasm-ld"),
];

/// What builds the modules on a machine whose Rust has no wasm target: a compiler and its library's source, from Debian.
const GUESTS: [(&str, &str); 3] = [
    ("rustc-web", "/usr/share/doc/rustc-web"),
    ("cargo-web", "/usr/share/doc/cargo-web"),
    ("rust-web-src", "/usr/share/doc/rust-web-src"),
];

/// What builds the probes as they ship (`agent-core/probes/tiny.toml`), from Debian.
pub(crate) const PROBES: [(&str, &str); 5] = [
    ("rustc-web", "/usr/share/doc/rustc-web"),
    ("cargo-web", "/usr/share/doc/cargo-web"),
    ("rust-web-src", "/usr/share/doc/rust-web-src"),
    ("musl-tools", "/usr/bin/musl-gcc"),
    ("gcc", "/usr/bin/gcc"),
];

/// Checks everything, and installs the packages that are missing.
pub(crate) fn ensure() -> Result<()> {
    rust()?;
    go()?;
    packages(&PACKAGES)?;
    packages(&PROBES)?;
    if builds_guests()? { Ok(()) } else { packages(&GUESTS) }
}

fn rust() -> Result<()> {
    let wanted = env!("CARGO_PKG_RUST_VERSION");
    let version = run::output(run::cargo().arg("--version")).context("Rust is needed: https://rustup.rs")?;
    let found = numbers(&version).with_context(|| format!("cannot read cargo's version from {version:?}"))?;
    if Some(found) < numbers(wanted) {
        bail!("Rust {wanted} or newer is needed, this is {}: run `rustup update stable`", version.trim());
    }
    Ok(())
}

fn go() -> Result<()> {
    let remedy =
        format!("Go {}.{} or newer is needed for the pinned test tools: https://go.dev/dl", GO.0, GO.1);
    let version = run::output(Command::new("go").arg("version")).context(remedy.clone())?;
    let found = numbers(version.trim_start_matches("go version go"));
    if found < Some(GO) {
        bail!("{remedy}; this is {}", version.trim());
    }
    Ok(())
}

/// Installs those of Debian's packages whose file is not there.
pub(crate) fn packages(wanted: &[(&'static str, &str)]) -> Result<()> {
    let missing: Vec<&str> =
        wanted.iter().filter(|(_, file)| !Path::new(file).exists()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install --no-install-recommends {}", missing.join(" "));
    if !run::on_path("apt-get") {
        bail!("these are missing: {}. On Debian: `{line}`", missing.join(", "));
    }
    run::step(&format!("install {}", missing.join(", ")), || {
        let apt = || {
            let mut apt = Command::new("apt-get");
            apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-qq");
            apt
        };
        run::check(apt().arg("update"))?;
        run::check(apt().args(["install", "-y", "--no-install-recommends"]).args(&missing))
            .with_context(|| format!("try it by hand as root: `{line}`"))
    })
}

/// Whether the modules are built already, or by the Rust that is there.
fn builds_guests() -> Result<bool> {
    let sysroot = run::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let target = Path::new(sysroot.trim()).join("lib/rustlib/wasm32-unknown-unknown/lib");
    Ok(std::env::var_os("AETHER_MODULES_DIR").is_some() || target.is_dir())
}

/// The first two numbers of `1.95.0 (…)`, `cargo 1.95.0 …` or `1.90`.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let mut parts = text.get(start..)?.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_tools_print() {
        assert_eq!(numbers("cargo 1.95.0 (f2d3ce0bd 2026-03-21)"), Some((1, 95)));
        assert_eq!(numbers("1.90"), Some((1, 90)));
        assert_eq!(numbers("1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(numbers("none"), None);
    }
}
