//! Being told that the directory changed (C01): inotify on the directory and on its parent, and the directory's identity,
//! so that one which was replaced is noticed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::{FutureExt as _, StreamExt as _};
use inotify::{EventMask, EventStream, Inotify, WatchDescriptor, WatchMask};
use rustix::fs;

/// Why events cannot be had now. Until they can, the directory is polled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArmError {
    #[error(
        "cannot watch {path} with inotify (raise fs.inotify.max_user_instances or max_user_watches if it ran out)"
    )]
    Unavailable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} was replaced while it was being watched")]
    Moving { path: PathBuf },
}

/// What one read of the queue told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Something in the directory changed.
    pub(crate) changed: bool,
    /// The directory itself, or what its path names, changed: watch it anew.
    pub(crate) replaced: bool,
    /// The kernel's queue ran over: events are lost.
    pub(crate) overflow: bool,
}

/// Which directory is watched: device and inode.
type Identity = (u64, u64);

/// A watched directory.
#[derive(Debug)]
pub(crate) struct Events {
    queue: EventStream<Vec<u8>>,
    /// `None` while there is no such directory: then only the parent is watched, for it to come.
    directory: Option<(WatchDescriptor, Identity)>,
    path: PathBuf,
    name: OsString,
    binaries: Binaries,
}

/// The plugin's directory, where only the plugin is of interest.
#[derive(Debug)]
struct Binaries {
    /// `None` where it cannot be watched: then the plugin is polled.
    watch: Option<WatchDescriptor>,
    /// What the path named when it was tried.
    identity: Option<Identity>,
    path: PathBuf,
    plugin: OsString,
}

/// Holds some hundred events with names of usual length.
const BUFFER: usize = 16 * 1024;
/// Events of one go: a writer that never pauses must not keep the reader from looking at the list.
const EVENTS_MAX: usize = 4096;

impl Events {
    /// Watches the directory that `path` names now, or its parent where there is none yet; and the `plugin`.
    pub(crate) fn arm(path: &Path, plugin: &Path) -> Result<Self, ArmError> {
        let unavailable = |source| ArmError::Unavailable { path: path.to_owned(), source };
        let inotify = Inotify::init().map_err(unavailable)?;
        let inside = WatchMask::CREATE
            | WatchMask::MODIFY
            | WatchMask::CLOSE_WRITE
            | WatchMask::ATTRIB
            | WatchMask::MOVE
            | WatchMask::DELETE
            | WatchMask::DELETE_SELF
            | WatchMask::MOVE_SELF
            | WatchMask::ONLYDIR;
        // The parent first: a replacement after this is an event, whatever comes next. That it cannot be watched costs
        // promptness only: a directory that comes back is then found by the next poll.
        let around = WatchMask::CREATE | WatchMask::MOVE | WatchMask::DELETE | WatchMask::ONLYDIR;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            let _ = inotify.watches().add(parent, around);
        }
        let directory = match identity(path) {
            None => None,
            Some(before) => {
                let watch = inotify.watches().add(path, inside);
                if identity(path) != Some(before) {
                    return Err(ArmError::Moving { path: path.to_owned() });
                }
                Some((watch.map_err(unavailable)?, before))
            }
        };
        let binaries = Binaries::arm(&inotify, plugin);
        let queue = inotify.into_event_stream(vec![0; BUFFER]).map_err(unavailable)?;
        let name = path.file_name().unwrap_or_default().to_owned();
        Ok(Self { queue, directory, path: path.to_owned(), name, binaries })
    }

    /// Whether the directory itself is watched, not just waited for.
    pub(crate) fn is_complete(&self) -> bool {
        self.directory.is_some()
    }

    /// Whether both paths still name the watched directories. Asked at each poll: no event tells of a change further up.
    pub(crate) fn stands(&self) -> bool {
        self.directory_stands() && identity(&self.binaries.path) == self.binaries.identity
    }

    /// Whether the path still names the watched directory of configurations.
    pub(crate) fn directory_stands(&self) -> bool {
        identity(&self.path) == self.directory.as_ref().map(|(_, identity)| *identity)
    }

    /// Waits for events and takes what has come. Dropping the future loses none: only the first one is waited for.
    pub(crate) async fn heard(&mut self) -> io::Result<Heard> {
        let mut heard = Heard::default();
        loop {
            let mut next = self.queue.next().await;
            for _ in 0..EVENTS_MAX {
                let Some(event) = next.transpose()? else { return Err(io::ErrorKind::UnexpectedEof.into()) };
                if self.binaries.watch.as_ref() == Some(&event.wd) {
                    heard.changed |= event.name.as_ref() == Some(&self.binaries.plugin);
                } else {
                    let inside = self.directory.as_ref().is_some_and(|(watch, _)| *watch == event.wd);
                    heard.take(event.mask, inside, event.name.as_ref() == Some(&self.name));
                }
                match self.queue.next().now_or_never() {
                    Some(more) => next = more,
                    None => break,
                }
            }
            if heard != Heard::default() {
                return Ok(heard);
            }
        }
    }
}

impl Binaries {
    fn arm(inotify: &Inotify, plugin: &Path) -> Self {
        let path = plugin.parent().unwrap_or(Path::new("/")).to_owned();
        let identity = identity(&path);
        let mask = WatchMask::CLOSE_WRITE
            | WatchMask::ATTRIB
            | WatchMask::MOVE
            | WatchMask::DELETE
            | WatchMask::ONLYDIR;
        // That it cannot be watched costs promptness only: the next poll looks at the plugin too.
        let watch = inotify.watches().add(&path, mask).ok();
        Self { watch, identity, path, plugin: plugin.file_name().unwrap_or_default().to_owned() }
    }
}

impl Heard {
    fn take(&mut self, mask: EventMask, inside: bool, named: bool) {
        if mask.contains(EventMask::Q_OVERFLOW) {
            self.overflow = true;
        } else if inside {
            let gone =
                EventMask::DELETE_SELF | EventMask::MOVE_SELF | EventMask::IGNORED | EventMask::UNMOUNT;
            self.replaced |= mask.intersects(gone);
            self.changed = true;
        } else if named {
            // The parent's other entries are nobody's business here.
            self.replaced = true;
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let stat = fs::stat(path).ok()?;
    fs::FileType::from_raw_mode(stat.st_mode).is_dir().then_some((stat.st_dev, stat.st_ino))
}
