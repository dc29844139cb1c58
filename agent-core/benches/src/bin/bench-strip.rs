//! P8: how long our entry is away when somebody strips it. A real directory, a real containerd, the real agent; the time runs
//! from the moment when the foreign writer has closed or renamed, to our rename, and to the runtime's load of it.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aether_benches::{Figure, Report, Samples};
use aether_domain::paths::{CNI_CONF_DIR, PLUGIN, TEMP_PREFIX};
use aether_harness::cri::Cri;
use aether_harness::lists::{FLANNEL, FLANNEL_FILE};
use aether_harness::{Containerd, Node, Options, tools};
use anyhow::{Context as _, Result, bail};
use clap::Parser;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// The goals for strip to repaired, in milliseconds.
const GOALS: (f64, f64) = (10.0, 50.0);
/// The pause after each repair: strips that follow each other faster are a fight, which is answered ever later (C06).
const PEACE: Duration = Duration::from_millis(1200);
/// Within which everything must have happened.
const LIMIT: Duration = Duration::from_secs(30);

/// Measures repairs.
#[derive(Debug, Parser)]
struct Args {
    /// How many strips by each kind of writer.
    #[arg(long, default_value_t = 100)]
    strips: usize,
}

/// A way to strip.
#[derive(Debug, Clone, Copy)]
enum Writer {
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
    const ALL: [Self; 4] = [Self::InPlace, Self::RenamedInside, Self::RenamedOutside, Self::Recreated];

    fn name(self) -> &'static str {
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
            Self::RenamedInside => over(net_d.join("writer.tmp"))?,
            Self::RenamedOutside => over(outside.join("writer.tmp"))?,
            Self::Recreated => {
                std::fs::remove_file(&list)?;
                std::fs::write(&list, text)?;
            }
        }
        Ok(Instant::now())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let node = Node::start(Options::flannel(Containerd::V2)).await?;
    node.install(&[])?;
    let _agent = node.start_agent().await?;
    let net_d = node.path(CNI_CONF_DIR);
    let renames = renames(&net_d)?;
    let cri = node.cri();
    let mut report = Report::default();
    let mut round = 0;
    for writer in Writer::ALL {
        let (mut repaired, mut loaded) = (Samples::default(), Samples::default());
        for _ in 0..args.strips {
            round += 1;
            let key = format!("\"round\": {round},");
            let text = FLANNEL.replace("\"hairpinMode\": true,", &format!("\"hairpinMode\": true, {key}"));
            while renames.try_recv().is_ok() {}
            let stripped = writer.strip(&net_d, &node.path("/etc/cni"), &text)?;
            let at =
                renames.recv_timeout(LIMIT).with_context(|| format!("round {round} was not repaired"))?;
            repaired.add(at.saturating_duration_since(stripped));
            loaded.add(load(&cri, &key, stripped).await?);
            // pause: the pause is the bench's own: see PEACE.
            tokio::time::sleep(PEACE).await;
        }
        let mut add = |what: String, value, at_most| {
            report.add(Figure { goal: "P8", what, value, unit: "ms", at_most, samples: repaired.len() });
        };
        let name = writer.name();
        add(format!("strip to repaired, {name}: p50"), repaired.median(), Some(GOALS.0));
        add(format!("strip to repaired, {name}: p99"), repaired.percentile(99), Some(GOALS.1));
        add(format!("strip to loaded by containerd, {name}: p50"), loaded.median(), None);
        add(format!("strip to loaded by containerd, {name}: p99"), loaded.percentile(99), None);
    }
    report.write(&tools::workspace().join("target/bench"), "strip")
}

/// The moments of our renames: those of a temporary file of ours over the list.
fn renames(net_d: &Path) -> Result<Receiver<Instant>> {
    let queue = inotify::init(CreateFlags::CLOEXEC).context("inotify")?;
    inotify::add_watch(&queue, net_d, WatchFlags::MOVE).context("watch net.d")?;
    let (told, moments) = channel();
    // Ends with the process, or with whoever listens.
    std::thread::spawn(move || {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&queue, &mut buffer);
        let mut ours = None;
        while let Ok(event) = reader.next() {
            let at = Instant::now();
            let name = event.file_name().map(std::ffi::CStr::to_bytes).unwrap_or_default();
            if event.events().contains(ReadFlags::MOVED_FROM) {
                ours = name.starts_with(TEMP_PREFIX.as_bytes()).then_some(event.cookie());
            } else if name == FLANNEL_FILE.as_bytes()
                && ours == Some(event.cookie())
                && told.send(at).is_err()
            {
                return;
            }
        }
    });
    Ok(moments)
}

/// Waits until the runtime has loaded this round's list with our entry, as fast as it can be asked.
async fn load(cri: &Cri, key: &str, since: Instant) -> Result<Duration> {
    let quoted = key.replace('"', "\\\"");
    while since.elapsed() < LIMIT {
        let status = cri.runtime_status().await?;
        if status.cni_config.contains(&quoted) && status.plugins().iter().any(|plugin| plugin == PLUGIN) {
            return Ok(since.elapsed());
        }
    }
    bail!("containerd did not load the list with {key} within {LIMIT:?}")
}
