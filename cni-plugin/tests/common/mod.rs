//! Runs the real binary as a runtime does.

#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

pub mod agent;
pub mod raw;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// After which a hanging plugin is killed and its test fails.
pub const HANGS: Duration = Duration::from_secs(60);

/// A container id as containerd makes them.
pub const ID: &str = "59e3eeb07bf1b08cac9cf75800f927f3ff05b05153a29b9bda50f4ab1d74b77c";

/// A node's places, in a directory of the test's own.
pub struct Place {
    pub dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("cni.sock")
    }

    pub fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub fn deletes(&self) -> PathBuf {
        self.state().join("deletes")
    }

    /// The tombstones' files, temporary ones too.
    pub fn tombstones(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.deletes()) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// Makes it look as if the agent had recorded `id` on `eth0`.
    pub fn record(&self, id: &str) {
        std::fs::create_dir_all(self.state().join("pods")).unwrap();
        std::fs::write(self.state().join("pods").join(format!("{id}+eth0.json")), b"{}").unwrap();
    }

    pub fn uninstall(&self) {
        std::fs::create_dir_all(self.state()).unwrap();
        std::fs::write(self.state().join("uninstalled"), b"{}").unwrap();
    }

    /// Our entry with `more`, in a list of 0.3.1.
    pub fn config(&self, more: &Value) -> Value {
        let mut config = json!({
            "cniVersion": "0.3.1", "name": "cbr0", "type": "aether-cni",
            "agentSocket": self.socket(), "stateDir": self.state(),
        });
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        config
    }

    pub fn add(&self, more: &Value) -> Plugin {
        let mut config = self.config(&json!({"prevResult": {"cniVersion": "0.3.1", "dns": {}}}));
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        Plugin::new("ADD").stdin(config.to_string())
    }

    pub fn del(&self) -> Plugin {
        Plugin::new("DEL").stdin(self.config(&json!({})).to_string())
    }

    pub fn call(&self, command: &str) -> Plugin {
        Plugin::new(command).stdin(self.config(&json!({"prevResult": {"cniVersion": "0.3.1"}})).to_string())
    }
}

/// What the plugin reads.
pub enum Stdin {
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, and no end while it runs.
    Open(Vec<u8>),
    /// This.
    Of(Stdio),
}

/// One call of the plugin.
pub struct Plugin {
    command: Command,
    stdin: Stdin,
    stdout: Stdio,
    stderr: Stdio,
}

impl Plugin {
    pub fn new(command: &str) -> Self {
        Self::by_hand()
            .env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", ID)
            .env("CNI_IFNAME", "eth0")
            .env("CNI_NETNS", "/run/netns/cni-no-such-namespace")
            .env("CNI_PATH", "/opt/cni/bin")
            .env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=prod;K8S_POD_NAME=web-0;K8S_POD_UID=u-1")
    }

    pub fn by_hand() -> Self {
        Self::program(Command::new(env!("CARGO_BIN_EXE_aether-cni")))
    }

    /// The plugin under `strace` with these arguments; tests of faults depend on it.
    pub fn traced(self, arguments: &[&str]) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(arguments).arg(env!("CARGO_BIN_EXE_aether-cni"));
        self.through(command)
    }

    /// A shell script that runs the plugin as `"$0"`.
    pub fn script(self, script: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", script, env!("CARGO_BIN_EXE_aether-cni")]);
        self.through(command)
    }

    /// The same in a mount namespace whose `/run` and `/var/lib` are empty, so that the default places can be tested.
    pub fn on_a_fresh_node(self, script: &str) -> Self {
        let mut command = Command::new("unshare");
        let script = format!("mount -t tmpfs none /run; mount -t tmpfs none /var/lib; {script}");
        command.args(["--mount", "--propagation", "private", "/bin/sh", "-ec", &script]);
        command.arg(env!("CARGO_BIN_EXE_aether-cni"));
        self.through(command)
    }

    /// The same call by another program, which is, or runs, the plugin.
    pub fn through(mut self, mut command: Command) -> Self {
        command.env_clear().current_dir("/").env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for (name, value) in self.command.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        self.command = command;
        self
    }

    fn program(mut command: Command) -> Self {
        command.env_clear().current_dir("/");
        Self { command, stdin: Stdin::Bytes(Vec::new()), stdout: Stdio::piped(), stderr: Stdio::piped() }
    }

    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stdin::Bytes(bytes.into());
        self
    }

    pub fn stdin_of(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    pub fn stdout_of(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    pub fn stderr_of(mut self, stderr: impl Into<Stdio>) -> Self {
        self.stderr = stderr.into();
        self
    }

    /// Runs it with these descriptors closed.
    pub fn closing(self, descriptors: &str) -> Self {
        self.script(&format!("exec \"$0\" {descriptors}"))
    }

    pub fn start(mut self) -> Running {
        let started = Instant::now();
        let (bytes, open) = match self.stdin {
            Stdin::Bytes(bytes) => (Some(bytes), false),
            Stdin::Open(bytes) => (Some(bytes), true),
            Stdin::Of(stdin) => {
                self.command.stdin(stdin);
                (None, false)
            }
        };
        if bytes.is_some() {
            self.command.stdin(Stdio::piped());
        }
        let mut child =
            self.command.stdout(self.stdout).stderr(self.stderr).spawn().unwrap_or_else(|error| {
                panic!("cannot run {}: {error} (is it installed?)", self.command.get_program().display())
            });
        let (hold, released) = std::sync::mpsc::channel::<()>();
        if let (Some(bytes), Some(mut stdin)) = (bytes, child.stdin.take()) {
            std::thread::spawn(move || {
                // A plugin that has read enough closes its end.
                let _ = stdin.write_all(&bytes);
                if open {
                    let _ = released.recv();
                }
            });
        }
        Running { child, started, hold }
    }

    pub fn run(self) -> Ended {
        self.start().wait()
    }
}

/// A running call.
pub struct Running {
    pub child: Child,
    started: Instant,
    hold: std::sync::mpsc::Sender<()>,
}

impl Running {
    pub fn wait(mut self) -> Ended {
        let read = |pipe: Option<Box<dyn std::io::Read + Send>>| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                if let Some(mut pipe) = pipe {
                    let _ = pipe.read_to_end(&mut bytes);
                }
                bytes
            })
        };
        let stdout = read(self.child.stdout.take().map(|pipe| Box::new(pipe) as _));
        let stderr = read(self.child.stderr.take().map(|pipe| Box::new(pipe) as _));
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.started.elapsed() > HANGS {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("the plugin did not end within {HANGS:?}");
            }
            // pause: of the poll
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = self.started.elapsed();
        drop(self.hold);
        Ended {
            status,
            took,
            stdout: stdout.join().unwrap(),
            stderr: String::from_utf8(stderr.join().unwrap()).unwrap(),
        }
    }
}

/// A call that ended.
#[derive(Debug)]
pub struct Ended {
    pub status: std::process::ExitStatus,
    pub took: Duration,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Ended {
    /// Asserts a success that prints nothing.
    #[track_caller]
    pub fn silent(self) -> Self {
        assert!(self.status.success(), "{self:?}");
        assert_eq!(String::from_utf8_lossy(&self.stdout), "");
        self
    }

    /// Asserts a success, and returns its one document.
    #[track_caller]
    pub fn document(&self) -> Value {
        assert!(self.status.success(), "{self:?}");
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts an error of `code` as one whole document, and returns it.
    #[track_caller]
    pub fn error(&self, code: u64) -> Value {
        let value = self.any_error();
        assert_eq!(value["code"], code, "{value}");
        value
    }

    #[track_caller]
    pub fn any_error(&self) -> Value {
        assert_eq!(self.status.code(), Some(1), "{self:?}");
        let value: Value =
            serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(value["code"].as_u64().is_some_and(|code| code > 0), "{value}");
        let text = |key: &str| value[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(text("cniVersion") && text("msg") && text("details"), "{value}");
        value
    }

    /// The word that follows `name=` in the log line.
    #[track_caller]
    pub fn logged(&self, name: &str) -> &str {
        let needle = format!(" {name}=");
        let at = self.stderr.find(&needle).unwrap_or_else(|| panic!("no {name} in {:?}", self.stderr));
        self.stderr[at + needle.len()..].split_whitespace().next().unwrap_or_default()
    }
}

/// Waits until `condition` holds.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + HANGS;
    while !condition() {
        assert!(Instant::now() < until, "not within {HANGS:?}: {what}");
        // pause: of the poll
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Reads a file that is JSON.
pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}
