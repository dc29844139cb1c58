//! Processes inside a node: short ones whose output is wanted, and long ones that are signalled and logged.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

pub use rustix::process::Signal;

use crate::wait;

/// Within which a started process must be seen, and a killed one be gone.
const LIMIT: Duration = Duration::from_secs(10);

/// What stands between `nsenter` and a process: a parent inside the node. `nsenter` itself stops when its child is
/// stopped, and stopped it would not reap a killed child, without which the node's pid 1 cannot end.
pub(crate) const WAITER: [&str; 4] = ["sh", "-c", "\"$@\" & wait $!", "waiter"];

/// What runs behind the waiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behind {
    /// The program.
    Program,
    /// strace, and the program is its child.
    Strace,
}

/// A long-running process inside a node. Dropping it kills it, unless another process started it.
#[derive(Debug)]
pub struct Process {
    name: String,
    /// `nsenter`, which passes the waiter's end on; none for a process that was found.
    outer: Option<Child>,
    pid: Pid,
    pidfd: OwnedFd,
    log: PathBuf,
}

impl Process {
    /// Runs `command`, which enters the node and ends with [`WAITER`], and finds the process behind it.
    pub(crate) fn spawn(
        name: &str,
        behind: Behind,
        mut command: Command,
        log: PathBuf,
    ) -> anyhow::Result<Self> {
        let mut outer = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
        let nsenter = outer.id().to_string();
        let found = wait::until_blocking(&format!("{name} inside the node"), LIMIT, || {
            if outer.try_wait()?.is_some() {
                return Ok(None);
            }
            let waiter = child(&nsenter)?;
            let process = child(&waiter)?;
            // Until it has executed its program, the child still is a copy of its parent.
            ensure!(command_line(&process)? != command_line(&waiter)?, "{process} has not begun yet");
            let process = match behind {
                Behind::Program => process,
                Behind::Strace => traced(&process)?,
            };
            Ok(Pid::from_raw(process.parse()?))
        });
        let pid = match found {
            Ok(Some(pid)) => pid,
            Ok(None) => return Err(ended_at_once(name, outer.wait()?, &log)),
            Err(error) => {
                let _ = outer.kill();
                let _ = outer.wait();
                return Err(error);
            }
        };
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
            return Err(ended_at_once(name, outer.wait()?, &log));
        };
        Ok(Self { name: name.to_owned(), outer: Some(outer), pid, pidfd, log })
    }

    /// A process that somebody else started, and whose log is `log`.
    pub(crate) fn adopt(name: &str, pid: Pid, log: PathBuf) -> anyhow::Result<Self> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).with_context(|| format!("{name} has ended"))?;
        Ok(Self { name: name.to_owned(), outer: None, pid, pidfd, log })
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pid as the machine sees it.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The file that its standard output and error go to.
    pub(crate) fn log_path(&self) -> &Path {
        &self.log
    }

    /// What it has written so far to standard output and error.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Whether it lives.
    pub fn is_running(&mut self) -> bool {
        match &mut self.outer {
            Some(outer) => matches!(outer.try_wait(), Ok(None)),
            None => !self.has_ended_within(Duration::ZERO),
        }
    }

    /// Sends a signal. A process that has ended takes none, which is no error. Returns from SIGSTOP when the process
    /// stands: until then its threads may still take a connection or write a file.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.pidfd, signal);
        if signal == Signal::STOP {
            stands(self.pid);
        }
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.gone(LIMIT);
    }

    /// Asks it to end (SIGTERM) and waits for that.
    pub fn terminate(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        self.signal(Signal::TERM);
        self.ended(limit)
    }

    /// Waits for its end; death by a signal shows as the code 128 and the signal's number.
    pub fn ended(&mut self, limit: Duration) -> anyhow::Result<ExitStatus> {
        let name = &self.name;
        let outer =
            self.outer.as_mut().with_context(|| format!("{name} is not ours: how it ends is not told"))?;
        wait::until_blocking(&format!("the end of {name}"), limit, || {
            outer.try_wait()?.context("it still runs")
        })
    }

    /// Waits until it is gone, however it ended, and returns in that moment.
    pub fn gone(&mut self, limit: Duration) -> anyhow::Result<()> {
        ensure!(self.has_ended_within(limit), "the end of {} did not come within {limit:?}", self.name);
        // Its waiter is on the way.
        wait::until_blocking(&format!("the end of {}", self.name), LIMIT, || {
            ensure!(!self.is_running(), "it still runs");
            Ok(())
        })
    }

    /// Whether the process itself has ended, or does so within `limit`; its waiter may still be on the way.
    fn has_ended_within(&self, limit: Duration) -> bool {
        let mut looked = [PollFd::from_borrowed_fd(self.pidfd.as_fd(), PollFlags::IN)];
        let limit = Timespec::try_from(limit).ok();
        matches!(rustix::event::poll(&mut looked, limit.as_ref()), Ok(1..))
    }

    /// Lets it live on after this process.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.outer.is_some() {
            self.kill();
        }
    }
}

/// Whether a command inside a node ended by SIGKILL, as such or as the code that stands for it.
pub fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;
    status.signal() == Some(Signal::KILL.as_raw()) || status.code() == Some(128 + Signal::KILL.as_raw())
}

/// Waits until no thread of the process runs, at most for [`LIMIT`]; one that has ended stands.
pub fn stands(pid: Pid) {
    let _ = wait::until_blocking("a stopped process", LIMIT, || {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else {
            return Ok(());
        };
        for thread in threads {
            let stat = std::fs::read_to_string(thread?.path().join("stat"))?;
            // The name may hold brackets and blanks; the state follows its last bracket.
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            ensure!(matches!(state, Some('T' | 't' | 'Z' | 'X')), "a thread is in state {state:?}");
        }
        Ok(())
    });
}

fn child(pid: &str) -> anyhow::Result<String> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children.split_whitespace().next().with_context(|| format!("{pid} has no child yet"))?.to_owned())
}

fn command_line(pid: &str) -> anyhow::Result<Vec<u8>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline"))?;
    ensure!(!line.is_empty(), "{pid} has ended");
    Ok(line)
}

/// The program that strace runs, once it runs; strace tries itself out on a child of its own first.
fn traced(strace: &str) -> anyhow::Result<String> {
    let process = child(strace)?;
    let line = command_line(strace)?;
    let program = command_line(&process)?;
    ensure!(program != line && line.ends_with(&program), "strace has not begun it yet");
    Ok(process)
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
