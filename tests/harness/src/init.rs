//! pid 1 of a node: how it is started, found again, and ended.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{tools, wait};

const SCRIPT: &str = include_str!("node/init.sh");

/// Within which the namespaces must stand, and within which they must fall; a tenth of a second is usual.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs the script in new namespaces and, when all in them is dead, removes the cgroups that containerd never removes,
/// and the directory unless a reboot follows.
/// It runs outside of the node, so it also cleans up after a test process that was killed.
const OUTER: &str = r#"
unshare --net --mount --uts --ipc --pid --fork --kill-child=KILL --propagation private sh -c "$SCRIPT" init
for cgroup in /sys/fs/cgroup"$CGROUP" /sys/fs/cgroup/*"$CGROUP"; do
  [ ! -d "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} +
done
[ -e "$D/keep" ] || rm -rf "$D"
"#;

/// A running pid 1.
#[derive(Debug)]
pub(crate) struct Init {
    pid: i32,
    /// The process outside, and the pipe whose end ends the node. None where the node was found again.
    outer: Option<(Child, Option<ChildStdin>)>,
}

impl Init {
    /// Starts pid 1 in `dir` and waits until the paths are laid out.
    pub(crate) fn start(dir: &Path) -> anyhow::Result<Self> {
        for stale in ["ready", "init.pid"] {
            let _ = std::fs::remove_file(dir.join(stale));
        }
        let log = File::create(dir.join("init.log")).context("cannot make the node's log")?;
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", OUTER]).env_clear().env("PATH", crate::PATH).env("D", dir);
        command.env("CGROUP", cgroup(dir)?);
        command.env("TOOLS", tools::built()).env("SCRIPT", SCRIPT);
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).current_dir("/");
        let mut child = command.spawn().context("cannot run setsid")?;
        let pipe = child.stdin.take();
        let mut init = Self { pid: 0, outer: Some((child, pipe)) };
        let began = wait::until_blocking("the node's namespaces", LIMIT, || init.look(dir));
        if began.is_err() || init.pid == 0 {
            let log = std::fs::read_to_string(dir.join("init.log")).unwrap_or_default();
            init.end();
            bail!("cannot lay out a node in {}: {}", dir.display(), log.trim());
        }
        Ok(init)
    }

    /// Finds the pid once all is laid out; pid 0 when the script has ended instead.
    fn look(&mut self, dir: &Path) -> anyhow::Result<()> {
        if let Some((child, _)) = &mut self.outer
            && child.try_wait()?.is_some()
        {
            self.pid = 0;
            return Ok(());
        }
        self.pid = read_pid(dir)?;
        if dir.join("ready").exists() { Ok(()) } else { bail!("not laid out yet") }
    }

    /// The pid 1 of a node that another process started in `dir`, if it lives.
    pub(crate) fn find(dir: &Path) -> Option<Self> {
        let pid = read_pid(dir).ok()?;
        // A pid is used again; the mark inside is this directory and no other.
        let same = |a: PathBuf, b: PathBuf| {
            use std::os::unix::fs::MetadataExt as _;
            match (std::fs::metadata(a), std::fs::metadata(b)) {
                (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
                _ => false,
            }
        };
        let root = PathBuf::from(format!("/proc/{pid}/root"));
        same(root.join("mnt/node"), dir.to_path_buf()).then_some(Self { pid, outer: None })
    }

    /// The pid as the machine sees it.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets the node live on after this process.
    pub(crate) fn leave(mut self) -> anyhow::Result<()> {
        if let Some((_, Some(pipe))) = &mut self.outer {
            pipe.write_all(b"stay\n").context("cannot tell the node to stay")?;
        }
        self.outer = None;
        self.pid = 0;
        Ok(())
    }

    /// Ends everything in the node and waits until it is gone.
    pub(crate) fn end(&mut self) {
        let pidfd = Pid::from_raw(self.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let Some(pidfd) = &pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        if let Some((mut child, pipe)) = self.outer.take() {
            drop(pipe);
            let _ = child.wait();
        } else if self.pid != 0 {
            let proc = PathBuf::from(format!("/proc/{}/ns/pid", self.pid));
            let _ = wait::until_blocking("the node's end", LIMIT, || {
                anyhow::ensure!(!proc.exists(), "pid {} still is there", self.pid);
                Ok(())
            });
        }
        self.pid = 0;
    }
}

impl Drop for Init {
    /// A node that was found is not ours to end.
    fn drop(&mut self) {
        if self.outer.is_some() {
            self.end();
        }
    }
}

/// The parent of all cgroups of a node's pods, named by the directory's inode so that no two nodes share one.
pub(crate) fn cgroup(dir: &Path) -> anyhow::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let inode = std::fs::metadata(dir).with_context(|| format!("cannot look at {}", dir.display()))?.ino();
    Ok(format!("/aether-node-{inode}"))
}

/// Removes the cgroups of a node that is dead.
pub(crate) fn remove_cgroups(cgroup: &str) {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    for hierarchy in hierarchies.chain([root.to_path_buf()]) {
        let parent = hierarchy.join(cgroup.trim_start_matches('/'));
        for child in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(child.path());
        }
        let _ = std::fs::remove_dir(parent);
    }
}

fn read_pid(dir: &Path) -> anyhow::Result<i32> {
    let file = dir.join("init.pid");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    text.trim().parse().with_context(|| format!("{} holds no pid: {text:?}", file.display()))
}
