//! Processes inside a node: short ones whose output is wanted, and long ones that are signalled and logged.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

pub use rustix::process::Signal;

use crate::wait;

/// Within which a started process must be seen, and a killed one be gone.
const LIMIT: Duration = Duration::from_secs(10);

/// A long-running process inside a node. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    name: String,
    /// `nsenter`, which waits for the process and passes its end on.
    outer: Child,
    pid: Pid,
    pidfd: OwnedFd,
    log: PathBuf,
}

impl Process {
    /// Runs `command`, which enters the node by `nsenter`, and finds the process behind it.
    pub(crate) fn spawn(name: &str, mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let mut outer = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let entered = Path::new("/proc").join(outer.id().to_string());
        let children = entered.join("task").join(outer.id().to_string()).join("children");
        let found = wait::until_blocking(&format!("{name} inside the node"), LIMIT, || {
            if let Some(status) = outer.try_wait()? {
                return Ok(Err(status));
            }
            let text = std::fs::read_to_string(&children)?;
            let pid: i32 = text.split_whitespace().next().context("no child yet")?.parse()?;
            // Until it has executed its program, the child still is a copy of nsenter.
            if std::fs::read_link(format!("/proc/{pid}/exe"))? == std::fs::read_link(entered.join("exe"))? {
                bail!("{pid} has not executed its program yet");
            }
            Ok(Ok(Pid::from_raw(pid).context("pid 0")?))
        });
        let pid = match found {
            Ok(Ok(pid)) => pid,
            Ok(Err(status)) => return Err(ended_at_once(name, status, &log)),
            Err(error) => {
                let _ = outer.kill();
                let _ = outer.wait();
                return Err(error);
            }
        };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Err(ended_at_once(name, outer.wait()?, &log));
        };
        Ok(Self { name: name.to_owned(), outer, pid, pidfd, log })
    }

    /// The pid as the machine sees it.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// What it has written so far to standard output and error.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether it lives.
    pub fn is_running(&mut self) -> bool {
        matches!(self.outer.try_wait(), Ok(None))
    }

    /// Sends a signal. A process that has ended takes none, which is no error.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
        // nsenter stops itself when its child is stopped, and must go on to see the child's end.
        if (signal == Signal::CONT || signal == Signal::KILL)
            && let Ok(outer) = i32::try_from(self.outer.id())
            && let Some(outer) = Pid::from_raw(outer)
        {
            let _ = rustix::process::kill_process(outer, Signal::CONT);
        }
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.ended(LIMIT);
    }

    /// Asks it to end (SIGTERM) and waits for that.
    pub fn terminate(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.ended(limit)
    }

    /// Waits for its end.
    pub fn ended(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let name = self.name.clone();
        wait::until_blocking(&format!("the end of {name}"), limit, || {
            // The stop that nsenter copies can come after our first SIGCONT.
            if let Ok(outer) = i32::try_from(self.outer.id())
                && let Some(outer) = Pid::from_raw(outer)
                && !Path::new(&format!("/proc/{}/exe", self.pid())).exists()
            {
                let _ = rustix::process::kill_process(outer, Signal::CONT);
            }
            self.outer.try_wait()?.context("it still runs")
        })
    }

    /// Lets it live on after this process.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ended_at_once(name: &str, status: ExitStatus, log: &Path) -> anyhow::Error {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    anyhow!("{name} ended at once ({status}): {}", text.trim())
}

/// The standard output of a command that must succeed.
pub(crate) fn succeed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    stdout(&format!("{command:?}"), &output)
}

fn stdout(what: &str, output: &Output) -> anyhow::Result<String> {
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("{what} failed ({}): {} {}", output.status, err.trim(), out.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
