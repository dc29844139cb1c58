//! A node's directories, and agents on it that end with the test, whatever happens.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything is waited for that is expected within a fraction of a second.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Writes a script that is to be run, by another process: a child of this one, which has many threads, could have it open for
/// writing still when it is run ("text file busy").
pub(crate) fn script(path: &Path, text: &str) {
    let mut install = Command::new("install");
    let install = install.args(["-m", "755", "/dev/stdin"]).arg(path).stdin(Stdio::piped());
    let mut install = install.spawn().unwrap();
    install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(install.wait().unwrap().success());
}

/// Looks until it holds; says what was seen last when it never does.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(last) if began.elapsed() > PATIENCE => panic!("never: {what}; last: {last}"),
            // pause: between two looks of a poll with a deadline
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// One node's directories.
pub(crate) struct Node {
    root: tempfile::TempDir,
}

impl Node {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("net.d")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    pub(crate) fn run(&self, name: &str) -> PathBuf {
        self.root.path().join("run").join(name)
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.root.path().join("state").join(name)
    }

    pub(crate) fn conf(&self, name: &str) -> PathBuf {
        self.root.path().join("net.d").join(name)
    }

    /// The command line of an agent whose own directory is `local`.
    pub(crate) fn arguments(&self, local: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        for (flag, below) in [
            ("--run-dir", "run"),
            ("--state-dir", "state"),
            ("--cni-conf-dir", "net.d"),
            ("--cni-bin-dir", "bin"),
            ("--plugin-source", "image/aether-cni"),
            ("--modules-dir", "modules"),
            ("--local-dir", local),
        ] {
            arguments.extend([flag.to_owned(), self.path(below).to_string_lossy().into_owned()]);
        }
        arguments
    }

    /// Starts an agent whose own directory is `local`.
    pub(crate) fn start(&self, local: &str) -> Agent {
        self.start_with(local, &[])
    }

    /// Starts an agent with more arguments.
    pub(crate) fn start_with(&self, local: &str, more: &[&str]) -> Agent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aether-agent"));
        command.args(self.arguments(local)).args(more);
        Agent::spawn(command, self.path(local))
    }

    /// Starts an agent under strace, which does `inject` to it.
    pub(crate) fn start_traced(&self, local: &str, inject: &[&str], more: &[&str]) -> Agent {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(inject);
        command.arg(env!("CARGO_BIN_EXE_aether-agent")).args(self.arguments(local)).args(more);
        Agent::spawn(command, self.path(local))
    }

    /// Starts an agent that may have so much address space, in bytes.
    pub(crate) fn start_confined(&self, local: &str, address_space: u64, more: &[&str]) -> Agent {
        let mut command = Command::new("prlimit");
        command.arg(format!("--as={address_space}")).arg(env!("CARGO_BIN_EXE_aether-agent"));
        command.args(self.arguments(local)).args(more);
        Agent::spawn(command, self.path(local))
    }

    /// Makes every directory that an agent would make, and flush, at its first start.
    pub(crate) fn with_directories(self) -> Self {
        for below in ["run", "state/pods", "state/deletes", "state/modules-cache", "a"] {
            std::fs::create_dir_all(self.path(below)).unwrap();
        }
        let key = self.path("state/modules-cache/key");
        std::fs::write(&key, [7; 64]).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        self
    }

    /// Starts an agent and waits until it serves.
    pub(crate) fn serving(&self, local: &str) -> Agent {
        let agent = self.start(local);
        agent.logged("serving on");
        agent
    }
}

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    local: PathBuf,
}

impl Drop for Agent {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in self.lines.lock().unwrap().iter() {
                eprintln!("agent: {line}");
            }
        }
        // Under strace the agent is strace's child.
        if let Some(pid) = self.find_pid() {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    fn spawn(mut command: Command, local: PathBuf) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AETHER_"))
        {
            command.env_remove(name);
        }
        let program = command.get_program().to_os_string();
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; apt-get install strace if it is that", program.display())
        });
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (sink, stderr) = (Arc::clone(&lines), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                sink.lock().unwrap().push(line);
            }
        });
        Self { child, lines, local }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a log line that contains `part`.
    pub(crate) fn logged(&self, part: &str) -> String {
        until(&format!("a log line with {part:?}"), || {
            let lines = self.lines();
            lines.iter().find(|line| line.contains(part)).cloned().ok_or_else(|| lines.join("\n"))
        })
    }

    pub(crate) fn has_logged(&self, part: &str) -> bool {
        self.lines().iter().any(|line| line.contains(part))
    }

    fn find_pid(&self) -> Option<rustix::process::Pid> {
        let lines = self.lines();
        let line = lines.iter().find(|line| line.contains("\"message\":\"starting\""))?;
        let pid = serde_json::from_str::<Value>(line).ok()?["pid"].as_i64()?;
        rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
    }

    /// The agent's process, not strace's.
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        self.logged("\"message\":\"starting\"");
        self.find_pid().unwrap()
    }

    /// Sends a signal; returns from SIGSTOP when no thread runs any more.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = self.pid();
        rustix::process::kill_process(pid, signal).unwrap();
        if signal == rustix::process::Signal::STOP {
            let tasks = PathBuf::from(format!("/proc/{}/task", pid.as_raw_nonzero()));
            until("a stopped agent", || {
                let stats = std::fs::read_dir(&tasks)
                    .unwrap()
                    .map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap());
                let running: Vec<_> = stats.filter(|stat| !stat.contains(") T ")).collect();
                if running.is_empty() { Ok(()) } else { Err(format!("{running:?}")) }
            });
        }
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        until("the agent's end", || self.child.try_wait().unwrap().ok_or_else(|| "it runs".to_owned()))
    }

    /// Asks it to stop and waits until it has; it must end well.
    pub(crate) fn stop(mut self) {
        self.signal(rustix::process::Signal::TERM);
        let status = self.ended();
        assert_eq!(status.code(), Some(0), "signal {:?}: {}", status.signal(), self.lines().join("\n"));
    }

    /// Kills it where it is.
    pub(crate) fn kill(mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.ended();
    }

    /// A file of its own directory.
    pub(crate) fn local(&self, name: &str) -> PathBuf {
        self.local.join(name)
    }

    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.local.join("admin.sock")
    }
}

/// Everything below `root`: path, inode, size and content of each file.
pub(crate) fn tree(root: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let stat = path.symlink_metadata().unwrap();
            let content = if stat.is_file() {
                std::fs::read_to_string(&path).unwrap_or_default()
            } else {
                String::new()
            };
            found.push(format!("{} {} {:o} {content}", path.display(), stat.ino(), stat.mode()));
            if stat.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A tmpfs that is gone with the test.
pub(crate) struct Tmpfs(PathBuf);

impl Tmpfs {
    pub(crate) fn mount(at: &Path, size: &str) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let options = format!("size={size},mode=0700");
        mount(&["-t", "tmpfs", "-o", &options, "aether-test"], at);
        Self(at.to_owned())
    }

    pub(crate) fn remount(&self, how: &str) {
        mount(&["-o", &format!("remount,{how}")], &self.0);
    }
}

fn mount(arguments: &[&str], at: &Path) {
    let output = Command::new("mount").args(arguments).arg(at).output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "cannot mount on {}: {why}; these tests need root and CAP_SYS_ADMIN",
        at.display()
    );
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
