//! A node in a temporary directory, and the real program run on it.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_aether-cni-install");
/// flannel's list, as flannel ships it.
pub(crate) const FLANNEL: &str = r#"{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {
      "type": "flannel",
      "delegate": {
        "hairpinMode": true,
        "isDefaultGateway": true
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
"#;
/// Its name.
pub(crate) const LIST: &str = "10-flannel.conflist";
/// How long anything may take before a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Directories of one node; all goes when it is dropped.
pub(crate) struct Node {
    dir: tempfile::TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            signal: output.status.signal(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that standard error says each of these.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in {self:#?}");
        }
        self
    }
}

impl Node {
    /// A node with directories, a plugin to install, and no list.
    pub(crate) fn empty() -> Self {
        let node = Self { dir: tempfile::tempdir().unwrap() };
        for dir in [node.conf(), node.bin()] {
            std::fs::create_dir_all(dir).unwrap();
        }
        node.release("v1");
        node
    }

    /// A node with flannel's list.
    pub(crate) fn flannel() -> Self {
        let node = Self::empty();
        node.put(LIST, FLANNEL);
        node
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }
    pub(crate) fn conf(&self) -> PathBuf {
        self.root().join("net.d")
    }
    pub(crate) fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }
    pub(crate) fn state(&self) -> PathBuf {
        self.root().join("state")
    }
    pub(crate) fn source(&self) -> PathBuf {
        self.root().join("image/aether-cni")
    }
    pub(crate) fn plugin(&self) -> PathBuf {
        self.bin().join("aether-cni")
    }
    pub(crate) fn wanted(&self) -> PathBuf {
        self.conf().join(".aether-cni-entry")
    }
    pub(crate) fn marker(&self) -> PathBuf {
        self.state().join("uninstalled")
    }
    pub(crate) fn list(&self) -> PathBuf {
        self.conf().join(LIST)
    }

    /// Makes another release the one to install.
    pub(crate) fn release(&self, version: &str) {
        std::fs::create_dir_all(self.root().join("image")).unwrap();
        std::fs::write(self.source(), format!("#!/bin/sh\n# {version}\n")).unwrap();
    }

    /// Writes a file into the directory of lists.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.conf().join(name), content).unwrap();
    }

    /// A file in the directory of lists.
    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.conf().join(name)).unwrap()
    }

    /// The program's arguments for this node.
    pub(crate) fn args(&self) -> Vec<PathBuf> {
        [
            ("--cni-conf-dir", self.conf()),
            ("--cni-bin-dir", self.bin()),
            ("--state-dir", self.state()),
            ("--plugin-source", self.source()),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [PathBuf::from(flag), value])
        .collect()
    }

    /// The program on this node.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.env_clear().args(self.args()).args(args).stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Installs, without waiting for a list.
    pub(crate) fn install(&self) -> Ran {
        self.run(&["install", "--no-wait"])
    }

    pub(crate) fn uninstall(&self) -> Ran {
        self.run(&["uninstall"])
    }

    /// Runs the program under strace with these options; strace's own output goes to `trace`.
    pub(crate) fn strace(&self, options: &[String], args: &[&str]) -> (Ran, String) {
        let trace = self.root().join("trace");
        let output = Command::new("strace")
            .env_clear()
            .args(["-f", "-qq", "-o"])
            .arg(&trace)
            .args(options)
            .arg(PROGRAM)
            .args(self.args())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .expect("this test needs strace: apt-get install strace");
        (Ran::of(&output), std::fs::read_to_string(&trace).unwrap_or_default())
    }

    /// Everything below the directories of lists and plugins: path, mode, owner, link target or content.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, String)> {
        let mut all = Vec::new();
        for dir in [self.conf(), self.bin()] {
            tree(&dir, &mut all);
        }
        all.sort();
        all
    }

    /// The temporary files of ours in the three directories.
    pub(crate) fn temporaries(&self) -> Vec<PathBuf> {
        [self.conf(), self.bin(), self.state()]
            .iter()
            .filter_map(|dir| std::fs::read_dir(dir).ok())
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".aether-tmp-"))
            .collect()
    }

    /// The entries of ours in a list.
    pub(crate) fn ours(&self, name: &str) -> Vec<serde_json::Value> {
        ours(&self.get(name))
    }
}

fn tree(dir: &Path, all: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_symlink() {
            format!("-> {}", std::fs::read_link(&path).unwrap().display())
        } else if meta.is_dir() {
            tree(&path, all);
            String::new()
        } else {
            String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
        };
        let shown = format!("{:o} {} {} {content}", meta.mode(), meta.uid(), meta.gid());
        all.push((path, shown));
    }
}

/// The entries of ours in a list's bytes.
pub(crate) fn ours(bytes: &[u8]) -> Vec<serde_json::Value> {
    let list: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    let plugins = list["plugins"].as_array().unwrap();
    plugins.iter().filter(|entry| entry["type"] == "aether-cni").cloned().collect()
}

/// Waits until `done`, or fails.
#[track_caller]
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        // pause: of the poll
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sets a file's mode.
pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A child that is killed when the test ends.
pub(crate) struct Child(pub(crate) std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
