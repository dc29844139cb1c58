//! Where the programs of a node come from, and what to do when one is missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::Containerd;

/// The directory of the workspace, as it was when this was built.
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where `cargo xtask tools` puts what it builds.
pub fn built() -> PathBuf {
    workspace().join("target/tools")
}

/// Where the programs under test lie: `AETHER_BIN_DIR`, or `target/bin`, which `cargo xtask build` fills.
pub fn under_test() -> PathBuf {
    std::env::var_os("AETHER_BIN_DIR").map_or_else(|| workspace().join("target/bin"), PathBuf::from)
}

/// A program under test, by name.
pub fn program_under_test(name: &str) -> anyhow::Result<PathBuf> {
    let path = under_test().join(name);
    if !path.is_file() {
        bail!("{} is not there; build it with: cargo xtask build", path.display());
    }
    Ok(path)
}

/// Something that a node needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What it is.
    pub what: String,
    /// What brings it.
    pub remedy: String,
}

/// Everything that a node with this containerd lacks on this machine, all of it at once.
pub fn missing(containerd: Containerd) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut need = |there: bool, what: String, remedy: &str| {
        if !there {
            missing.push(Missing { what, remedy: remedy.to_owned() });
        }
    };
    need(rustix::process::geteuid().is_root(), "root (effective uid 0)".to_owned(), "run it as root");
    for (program, package) in [
        ("unshare", "util-linux"),
        ("nsenter", "util-linux"),
        ("setsid", "util-linux"),
        ("mount", "mount"),
        ("ip", "iproute2"),
        ("iptables", "iptables"),
        ("runc", "runc"),
    ] {
        need(in_path(program), format!("the program {program}"), &format!("apt-get install {package}"));
    }
    if containerd == Containerd::V1 {
        need(in_path("containerd"), "Debian's containerd".to_owned(), "apt-get install containerd");
    }
    for (path, remedy) in containerd.files() {
        need(path.is_file(), path.display().to_string(), remedy);
    }
    missing
}

/// Refuses, naming everything that lacks and its remedy.
pub fn check(containerd: Containerd) -> anyhow::Result<()> {
    let missing = missing(containerd);
    if missing.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = missing.iter().map(|m| format!("  {}: {}", m.what, m.remedy)).collect();
    bail!("a node with {} cannot be started here; it lacks\n{}", containerd.name(), list.join("\n"))
}

/// The path of a program of this machine.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    crate::PATH.split(':').map(|dir| Path::new(dir).join(program)).find(|path| path.is_file())
}

fn in_path(program: &str) -> bool {
    find(program).is_some()
}

/// Copies a program, executable; the target is replaced, never written into, so that a running one stays whole. One that
/// was copied before is left: programs are large, and agents are started by the hundred.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let same = |from: std::fs::Metadata, to: std::fs::Metadata| {
        from.len() == to.len() && from.modified().ok() < to.modified().ok()
    };
    if let (Ok(source), Ok(target)) = (from.metadata(), to.metadata())
        && same(source, target)
    {
        return Ok(());
    }
    let temp = to.with_extension("new");
    let status = install(from, &temp).status().context("run install")?;
    ensure!(
        status.success(),
        "cannot copy {} to {}: install ended with {status}",
        from.display(),
        temp.display()
    );
    std::fs::rename(&temp, to).with_context(|| format!("cannot put {} into place", to.display()))
}

/// Writes a script, executable.
pub fn write_script(to: &Path, text: &str) -> anyhow::Result<()> {
    let mut install = install(Path::new("/dev/stdin"), to).stdin(Stdio::piped()).spawn()?;
    install.stdin.take().context("its standard input")?.write_all(text.as_bytes())?;
    let status = install.wait()?;
    ensure!(status.success(), "cannot write {}: install ended with {status}", to.display());
    Ok(())
}

/// Another process writes it. This one has many threads: where one of them forks while a program is open for writing, the
/// child has it open too until it executes, and whoever runs the program meanwhile is told "text file busy".
fn install(from: &Path, to: &Path) -> Command {
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(from).arg(to);
    install
}
