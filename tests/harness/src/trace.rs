//! strace at an agent that runs already: it counts from the moment at which it looks, so that what is done "at the second
//! call" does not depend on how the agent came to stand where it does.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::process::Pid;

use crate::agents::Agent;
use crate::process::{Signal, stands};
use crate::wait;

/// Within which strace must have attached, an agent must have come to the call, and strace must have let go.
const LIMIT: Duration = Duration::from_secs(60);

/// strace at work on one agent. Dropping it lets the agent go, which goes on.
#[derive(Debug)]
pub struct Tracer {
    strace: Child,
    agent: Pid,
    trace: PathBuf,
}

/// At whose calls strace looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// At those of all threads, each counted by itself.
    All,
    /// At those of the main thread, which is the one that takes an agent over and hands it over: calls of the plugin are
    /// served by others.
    Main,
}

impl Agent {
    /// Has strace do `what` at calls of the kernel: `("sendmsg", "signal=KILL:when=2")`. Returns when it looks.
    pub fn traced(&self, threads: Threads, call: &str, what: &str) -> anyhow::Result<Tracer> {
        let pid = self.pid();
        let (trace, said) =
            (self.log_path().with_extension("trace"), self.log_path().with_extension("strace"));
        let file = File::create(&said).with_context(|| format!("cannot make {}", said.display()))?;
        let mut command = Command::new("strace");
        if threads == Threads::All {
            command.arg("-f");
        }
        command.args(["-y", "-p", &pid.to_string(), "-e", &format!("trace={call}")]);
        command.args(["-e", &format!("inject={call}:{what}"), "-o"]).arg(&trace);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let strace = command.spawn().context("cannot run strace")?;
        let agent = Pid::from_raw(pid).context("no pid")?;
        let tracer = Tracer { strace, agent, trace };
        wait::until_blocking(&format!("strace at {}", self.name()), LIMIT, || {
            let said = std::fs::read_to_string(&said)?;
            ensure!(said.contains("attached"), "it says {said:?}");
            Ok(())
        })?;
        Ok(tracer)
    }
}

impl Tracer {
    /// What it has seen so far.
    pub fn seen(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.trace).unwrap_or_default()).into_owned()
    }

    /// Waits until the agent stands at a call at which it was to be stopped.
    pub async fn stopped(&self) -> anyhow::Result<()> {
        wait::until("an agent stopped at its call", LIMIT, async || {
            let seen = self.seen();
            ensure!(seen.contains("stopped by SIGSTOP"), "its calls: {seen}");
            Ok(())
        })
        .await?;
        stands(self.agent);
        Ok(())
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It ends by itself with the agent; else it lets it go when it is told to end.
        if matches!(self.strace.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(Pid::from_child(&self.strace), Signal::TERM);
            let _ = self.strace.wait();
        }
    }
}
