//! An agent beside a bench, in a directory of its own: no namespaces to enter, no containerd.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aether_domain::paths;
use aether_harness::lists::{FLANNEL, FLANNEL_FILE};
use aether_harness::{INSTALLER, Signal, stands, tools, wait};
use anyhow::{Context as _, Result, ensure};
use rustix::process::{Pid, kill_process};

/// Within which it must serve.
const LIMIT: Duration = Duration::from_secs(20);

/// The agent. Dropping it kills it.
#[derive(Debug)]
pub struct Local {
    dir: tempfile::TempDir,
    agent: Child,
}

impl Local {
    /// Puts flannel's list there, installs, starts the agent, and waits until it serves; `prepare` may put more into its
    /// directory before, policies into `modules`.
    pub fn start(prepare: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        install(dir.path())?;
        prepare(dir.path())?;
        let mut agent = Command::new(tools::program_under_test("aether-agent")?);
        for (flag, name) in [
            ("--run-dir", "run"),
            ("--state-dir", "state"),
            ("--cni-conf-dir", "net.d"),
            ("--cni-bin-dir", "bin"),
            ("--local-dir", "local"),
            ("--modules-dir", "modules"),
        ] {
            agent.arg(flag).arg(dir.path().join(name));
        }
        agent.arg("--module-compiler").arg(tools::program_under_test(paths::MODULE_COMPILER)?);
        let log = std::fs::File::create(dir.path().join("log")).context("make the agent's log")?;
        let agent =
            agent.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().context("run the agent")?;
        let local = Self { dir, agent };
        let socket = local.path("run").join(paths::CNI_SOCKET);
        wait::until_blocking("the agent's socket", LIMIT, || {
            Ok(std::os::unix::net::UnixStream::connect(&socket).map(|_| ())?)
        })
        .with_context(|| local.log())?;
        Ok(local)
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.agent.id()
    }

    /// What it said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Asks it by `aetherctl`.
    pub fn ask<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<String> {
        let mut ask = Command::new(tools::program_under_test("aetherctl")?);
        ask.arg("--admin-socket").arg(self.path("local").join(paths::ADMIN_SOCKET)).args(arguments);
        let output = ask.output().context("run aetherctl")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Stops it, and returns when it stands.
    pub fn stop(&self) -> Result<()> {
        let pid = i32::try_from(self.agent.id()).ok().and_then(Pid::from_raw).context("the agent's pid")?;
        kill_process(pid, Signal::STOP)?;
        stands(pid);
        Ok(())
    }
}

/// A list of flannel's with our entry in it, and the plugin.
fn install(dir: &Path) -> Result<()> {
    let net_d = dir.join("net.d");
    std::fs::create_dir(&net_d)?;
    std::fs::create_dir(dir.join("bin"))?;
    std::fs::write(net_d.join(FLANNEL_FILE), FLANNEL)?;
    let mut installer = Command::new(tools::program_under_test(INSTALLER)?);
    for (flag, name) in [("--cni-conf-dir", "net.d"), ("--cni-bin-dir", "bin"), ("--state-dir", "state")] {
        installer.arg(flag).arg(dir.join(name));
    }
    installer.arg("--no-wait").arg("--plugin-source").arg(tools::program_under_test(paths::PLUGIN)?);
    let output = installer.output().context("run the installer")?;
    ensure!(output.status.success(), "the installer: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}
