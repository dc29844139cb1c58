//! A node: its directory, its namespaces, its containerd.

mod layout;
mod runtime;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::containerd::Containerd;
use crate::init::{self, Init};
use crate::process::{self, Behind, Process};
use crate::{lists, tools, wait};
use layout::{lay_out, new_boot, remove_dir, subnet, sweep};

/// Where the nodes of tests have their directories: a real file system, since containerd's layers need one.
const NODES: &str = "/var/tmp/aether-nodes";
/// Where the programs under test lie inside a node.
pub(crate) const BIN: &str = "/mnt/node/bin";
/// Within which a node's cleaner is done once the node is dead.
const CLEANER_LIMIT: Duration = Duration::from_secs(5);

/// How a node is to be.
#[derive(Debug, Clone)]
pub struct Options {
    /// Which containerd.
    pub containerd: Containerd,
    /// What lies in net.d from the start: file name and bytes.
    pub lists: Vec<(String, String)>,
}

impl Options {
    /// A node with flannel's list.
    pub fn flannel(containerd: Containerd) -> Self {
        Self { containerd, lists: vec![(lists::FLANNEL_FILE.to_owned(), lists::FLANNEL.to_owned())] }
    }

    /// A node with one list that says `version` and runs what flannel delegates to.
    pub fn bridge(containerd: Containerd, version: Option<&str>) -> Self {
        Self { containerd, lists: vec![("10-bridge.conflist".to_owned(), lists::bridge("cbr0", version))] }
    }

    /// A node whose net.d is empty.
    pub fn no_list(containerd: Containerd) -> Self {
        Self { containerd, lists: Vec::new() }
    }
}

/// What is kept in a node's directory for those who find it.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    containerd: Containerd,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    dir: PathBuf,
    version: Containerd,
    containerd: Option<Process>,
    init: Init,
    processes: AtomicU32,
    cgroup: String,
    /// Held for as long as the directory is in use.
    _lock: Option<File>,
}

/// The way into a node.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    pid: i32,
    search_path: String,
}

impl Inside {
    /// A command that will run inside, with the node's PATH and nothing else in its environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid.to_string(), "-m", "-n", "-p", "-i", "-u", "--", program]);
        command.env_clear().env("PATH", &self.search_path).current_dir("/");
        command
    }

    /// The same, killed by SIGKILL when it has run for `limit`.
    pub(crate) fn command_killed_after(&self, limit: Duration, program: &str) -> Command {
        let mut command = self.command("timeout");
        command.arg("--signal=KILL").arg(format!("{:.6}", limit.as_secs_f64())).arg(program);
        command
    }
}

impl Node {
    /// Starts a node in a directory of its own and waits until its containerd serves.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        tools::check(options.containerd)?;
        std::fs::create_dir_all(NODES).with_context(|| format!("cannot make {NODES}"))?;
        sweep();
        let dir = tempfile::Builder::new()
            .prefix("node-")
            .tempdir_in(NODES)
            .context("cannot make a node's directory")?;
        let dir = dir.keep();
        Self::start_in(dir, options).await
    }

    /// Starts a node in `dir`, which is made; it must be empty if it exists.
    pub async fn start_in(dir: PathBuf, options: Options) -> anyhow::Result<Self> {
        tools::check(options.containerd)?;
        if dir.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} is in use already; remove the node in it, or name another directory", dir.display());
        }
        let laid = lay_out(&dir, &options).and_then(|lock| Ok((lock, Init::start(&dir)?)));
        let (lock, init) = match laid {
            Ok(laid) => laid,
            Err(error) => {
                let _ = std::fs::remove_dir_all(&dir);
                return Err(error);
            }
        };
        let cgroup = init::cgroup(&dir)?;
        let mut node = Self {
            dir,
            version: options.containerd,
            containerd: None,
            init,
            processes: AtomicU32::new(0),
            cgroup,
            _lock: lock,
        };
        subnet(&node)?;
        node.start_containerd().await?;
        node.run(&["ctr", "-n", "k8s.io", "images", "import", "/mnt/node/pause.tar"])?;
        Ok(node)
    }

    /// The node that another process started in `dir` and left; None when there is none that lives.
    pub fn find(dir: &Path) -> anyhow::Result<Option<Self>> {
        let Ok(dir) = dir.canonicalize() else { return Ok(None) };
        let Some(init) = Init::find(&dir) else { return Ok(None) };
        let file = dir.join("state.json");
        let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let state: State =
            serde_json::from_slice(&text).with_context(|| format!("{} is not ours", file.display()))?;
        let cgroup = init::cgroup(&dir)?;
        let node = Self {
            dir,
            version: state.containerd,
            containerd: None,
            init,
            processes: AtomicU32::new(0),
            cgroup,
            _lock: None,
        };
        Ok(Some(node))
    }

    /// Which containerd it runs.
    pub fn version(&self) -> Containerd {
        self.version
    }

    /// Its directory on the machine.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The pid of its pid 1 as the machine sees it.
    pub fn pid(&self) -> i32 {
        self.init.pid()
    }

    /// The parent of its pods' cgroups.
    pub(crate) fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// A path of the node as this process can open it. An absolute link on the way would lead out of the node; the one
    /// that runtimes use, `/var/run`, is followed here.
    pub fn path(&self, inside: &str) -> PathBuf {
        let inside = inside.strip_prefix("/var").filter(|rest| rest.starts_with("/run/")).unwrap_or(inside);
        PathBuf::from(format!("/proc/{}/root{inside}", self.init.pid()))
    }

    /// A command that will run inside, with the node's PATH and nothing else in its environment.
    pub fn command(&self, program: &str) -> Command {
        self.inside().command(program)
    }

    /// The same, killed by SIGKILL when it has run for `limit`; [`was_killed`](crate::was_killed) tells.
    pub fn command_killed_after(&self, limit: Duration, program: &str) -> Command {
        self.inside().command_killed_after(limit, program)
    }

    /// What it takes to run commands inside, apart from the node.
    pub(crate) fn inside(&self) -> Inside {
        Inside { pid: self.init.pid(), search_path: self.search_path() }
    }

    /// The PATH inside.
    pub fn search_path(&self) -> String {
        format!("{BIN}:{}:{}", self.version.programs(), crate::PATH)
    }

    /// Runs a command inside to its end; its standard output, or an error that shows what it said.
    pub fn run(&self, command: &[&str]) -> anyhow::Result<String> {
        let (program, arguments) = command.split_first().context("an empty command")?;
        process::succeed(self.command(program).args(arguments).stdin(Stdio::null()))
    }

    /// Starts a long-running process inside; its output goes to a log of its own.
    pub fn spawn(&self, name: &str, program: &str, arguments: &[&str]) -> anyhow::Result<Process> {
        self.spawn_behind(name, Behind::Program, &[&[program], arguments].concat())
    }

    /// The same with what runs behind the waiter.
    pub(crate) fn spawn_behind(&self, name: &str, behind: Behind, line: &[&str]) -> anyhow::Result<Process> {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        let log = self.dir.join("log").join(format!("{name}-{number}.log"));
        let file = File::create(&log).with_context(|| format!("cannot make {}", log.display()))?;
        // A session of its own: an interrupt at the terminal is for the test, which then ends all.
        let [sh, waiter @ ..] = process::WAITER;
        let inner = self.command(sh);
        let mut command = Command::new("setsid");
        command.arg(inner.get_program()).args(inner.get_args()).args(waiter).args(line);
        command.env_clear().env("PATH", self.search_path()).current_dir("/");
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Process::spawn(name, behind, command, log)
    }

    /// Reboots: everything that runs ends, /run and the network are new, the boot's id is another, the disk stays.
    pub async fn reboot(&mut self) -> anyhow::Result<()> {
        std::fs::write(self.dir.join("keep"), "").context("cannot keep the node's directory")?;
        self.init.end();
        self.containerd = None;
        new_boot(&self.dir)?;
        self.init = Init::start(&self.dir)?;
        std::fs::remove_file(self.dir.join("keep")).context("cannot let go of the node's directory")?;
        subnet(self)?;
        self.start_containerd().await
    }

    /// The names of all processes in it, pid 1 apart.
    pub fn processes(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for pid in
            self.files("/proc")?.iter().filter_map(|name| name.parse::<u32>().ok()).filter(|pid| *pid != 1)
        {
            // One that ends while we look has no name any more.
            if let Ok(name) = std::fs::read_to_string(self.path(&format!("/proc/{pid}/comm"))) {
                names.push(name.trim().to_owned());
            }
        }
        Ok(names)
    }

    /// How many mounts only it can see.
    pub fn mounts(&self) -> anyhow::Result<usize> {
        let count = |path: &Path| std::fs::read_to_string(path).map(|text| text.lines().count());
        let inside = count(&PathBuf::from(format!("/proc/{}/mounts", self.pid())));
        let outside = count(Path::new("/proc/self/mounts"));
        Ok(inside
            .context("cannot read the node's mounts")?
            .saturating_sub(outside.context("cannot read our mounts")?))
    }

    /// Lets the node live on when this process ends.
    pub fn leave(mut self) -> anyhow::Result<()> {
        if let Some(containerd) = self.containerd.take() {
            containerd.leave();
        }
        self.init.leave()
    }

    /// Removes a node, its directory and its cgroups.
    pub fn remove(mut self) -> anyhow::Result<()> {
        self.init.end();
        // The node's cleaner does the rest; what it does not, because it was killed too, is done here.
        let gone = || {
            anyhow::ensure!(!self.dir.exists(), "{} still is there", self.dir.display());
            Ok(())
        };
        if wait::until_blocking("the node's cleaner", CLEANER_LIMIT, gone).is_err() {
            init::remove_cgroups(&self.cgroup);
            remove_dir(&self.dir)?;
        }
        Ok(())
    }

    /// Removes the directory of a node that no longer lives. Whether there was one; a directory that is not a node's
    /// is refused.
    pub fn remove_dead(dir: &Path) -> anyhow::Result<bool> {
        if !dir.exists() {
            return Ok(false);
        }
        if !dir.join("state.json").is_file() {
            bail!("{} is there and is no node's directory; name another one", dir.display());
        }
        init::remove_cgroups(&init::cgroup(dir)?);
        remove_dir(dir)?;
        Ok(true)
    }
}
