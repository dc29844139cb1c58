//! Foreign writers that strip the list of a node, and when it was put right.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aether_domain::paths::CNI_CONF_DIR;
use aether_harness::Node;
use aether_harness::cri::Cri;
use aether_harness::lists::{FLANNEL, FLANNEL_FILE};
use anyhow::{Context as _, Result, bail};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Within which a strip must have been repaired and loaded.
const LIMIT: Duration = Duration::from_secs(30);
/// The writers' own temporary file.
const TEMP: &str = "writer.tmp";

/// A way to strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// `cp -f`: truncated and written in place.
    InPlace,
    /// A temporary file beside it, renamed over.
    RenamedInside,
    /// A file of another directory, renamed over.
    RenamedOutside,
    /// Deleted, then made anew.
    Recreated,
}

impl Writer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::InPlace, Self::RenamedInside, Self::RenamedOutside, Self::Recreated];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "written in place",
            Self::RenamedInside => "renamed over, from inside",
            Self::RenamedOutside => "renamed over, from outside",
            Self::Recreated => "deleted and made anew",
        }
    }

    /// Strips, and returns when the last call was done.
    fn strip(self, net_d: &Path, outside: &Path, text: &str) -> std::io::Result<Instant> {
        let list = net_d.join(FLANNEL_FILE);
        let over = |temp: PathBuf| {
            std::fs::write(&temp, text)?;
            std::fs::rename(&temp, &list)
        };
        match self {
            Self::InPlace => std::fs::write(&list, text)?,
            Self::RenamedInside => over(net_d.join(TEMP))?,
            Self::RenamedOutside => over(outside.join(TEMP))?,
            Self::Recreated => {
                std::fs::remove_file(&list)?;
                std::fs::write(&list, text)?;
            }
        }
        Ok(Instant::now())
    }
}

/// A node whose list is stripped and put right by somebody.
#[derive(Debug)]
pub struct Stripped<'a> {
    node: &'a Node,
    cri: Cri,
    renames: Receiver<Instant>,
    /// The plugin whose entry comes back.
    plugin: &'a str,
}

/// From the foreign writer's last call on.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// To the rename that put the entry back.
    pub repaired: Duration,
    /// Until the runtime had loaded it.
    pub loaded: Duration,
}

impl<'a> Stripped<'a> {
    /// Watches the node's list; whose entry comes back is `plugin`.
    pub fn watch(node: &'a Node, plugin: &'a str) -> Result<Self> {
        let renames = renames(&node.path(CNI_CONF_DIR))?;
        Ok(Self { node, cri: node.cri(), renames, plugin })
    }

    /// Strips once, and waits until the entry is back and loaded. `round` must be another one each time.
    pub async fn round(&self, writer: Writer, round: usize) -> Result<Round> {
        let key = format!("round-{round:06}");
        let text = FLANNEL
            .replace("\"hairpinMode\": true,", &format!("\"hairpinMode\": true, \"note\": \"{key}\","));
        while self.renames.try_recv().is_ok() {}
        let stripped = writer.strip(&self.node.path(CNI_CONF_DIR), &self.node.path("/etc/cni"), &text)?;
        let at = self
            .renames
            .recv_timeout(LIMIT)
            .with_context(|| format!("{}: round {round} was not repaired within {LIMIT:?}", self.plugin))?;
        let loaded = self.load(&key, stripped).await?;
        Ok(Round { repaired: at.saturating_duration_since(stripped), loaded })
    }

    /// Waits until the runtime has loaded this round's list with the entry, as fast as it can be asked.
    async fn load(&self, key: &str, since: Instant) -> Result<Duration> {
        while since.elapsed() < LIMIT {
            let status = self.cri.runtime_status().await?;
            if status.cni_config.contains(key) && status.plugins().iter().any(|plugin| plugin == self.plugin)
            {
                return Ok(since.elapsed());
            }
        }
        bail!("containerd did not load the list {key} with {} within {LIMIT:?}", self.plugin)
    }
}

/// The moments at which somebody renamed a temporary file beside the list over it, the writers of this bench apart.
fn renames(net_d: &Path) -> Result<Receiver<Instant>> {
    let queue = inotify::init(CreateFlags::CLOEXEC).context("inotify")?;
    inotify::add_watch(&queue, net_d, WatchFlags::MOVE).context("watch net.d")?;
    let (told, moments) = channel();
    // Ends with the process, or with whoever listens.
    std::thread::spawn(move || {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&queue, &mut buffer);
        let mut repair = None;
        while let Ok(event) = reader.next() {
            let at = Instant::now();
            let name = event.file_name().map(std::ffi::CStr::to_bytes).unwrap_or_default();
            if event.events().contains(ReadFlags::MOVED_FROM) {
                repair = (name != TEMP.as_bytes()).then_some(event.cookie());
            } else if name == FLANNEL_FILE.as_bytes()
                && repair == Some(event.cookie())
                && told.send(at).is_err()
            {
                return;
            }
        }
    });
    Ok(moments)
}
