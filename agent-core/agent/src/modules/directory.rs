//! Noticing that the operator's modules changed (M08): by inotify on their directory, and by looking at it again and
//! again, which also sees what no event tells of: a mount, a change of what a link leads to.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use aether_domain::limits::{MODULES_POLL, MODULES_QUIET, MODULES_UNREST};
use futures_util::StreamExt as _;
use inotify::{EventStream, Inotify, WatchMask};
use tokio::time::{Instant, timeout_at};

/// What the directory looks like from outside: each file's name, identity, size and time of change. Cheap beside reading.
pub(crate) type Shape = Vec<(PathBuf, u64, u64, u64, i64, i64)>;

/// How many names are looked at: far above what any such directory holds.
const NAMES_MAX: usize = 4096;
/// Room for some hundred events.
const BUFFER: usize = 16 * 1024;

/// The directory of operator modules, watched.
pub(crate) struct Directory {
    path: PathBuf,
    events: Option<EventStream<Vec<u8>>>,
    /// What was there when it was read last.
    shape: Shape,
}

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, events: None, shape: Shape::new() }
    }

    /// Begins to watch, and takes what is there now for what is about to be read. Blocks.
    pub(crate) fn arm(&mut self) {
        self.events = watch(&self.path);
        self.shape = shape(&self.path);
    }

    /// Waits until something there differs from what was read last, and then until it rests.
    pub(crate) async fn changed(&mut self) {
        loop {
            let poll = Instant::now() + MODULES_POLL;
            let told = timeout_at(poll, next(&mut self.events)).await.is_ok();
            if told {
                self.rest().await;
            }
            let path = self.path.clone();
            // A look that broke off is made again at the next poll.
            let Ok(now) = tokio::task::spawn_blocking(move || shape(&path)).await else { continue };
            if now != self.shape {
                return;
            }
        }
    }

    /// Waits until no event has come for a moment: a copy is many of them.
    async fn rest(&mut self) {
        let limit = Instant::now() + MODULES_UNREST;
        while Instant::now() < limit {
            if timeout_at(Instant::now() + MODULES_QUIET, next(&mut self.events)).await.is_err() {
                return;
            }
        }
    }
}

/// The next event; without a source of them, never.
async fn next(events: &mut Option<EventStream<Vec<u8>>>) {
    let Some(stream) = events else { return std::future::pending().await };
    if !matches!(stream.next().await, Some(Ok(_))) {
        // The poll goes on.
        *events = None;
        std::future::pending::<()>().await;
    }
}

/// Watches the directory, the directories in it and its parent; where it cannot, there is the poll.
fn watch(path: &Path) -> Option<EventStream<Vec<u8>>> {
    let inotify = Inotify::init()
        .inspect_err(|error| {
            tracing::warn!(directory = %path.display(), every = ?MODULES_POLL, "cannot watch the modules with inotify: {error}; polling");
        })
        .ok()?;
    let mask = WatchMask::CREATE
        | WatchMask::CLOSE_WRITE
        | WatchMask::ATTRIB
        | WatchMask::MOVE
        | WatchMask::DELETE
        | WatchMask::ONLYDIR;
    let mut places = vec![path.to_owned()];
    places.extend(path.parent().map(Path::to_owned));
    let inside = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    places.extend(inside.filter(|path| path.is_dir()).take(NAMES_MAX));
    for place in places {
        // One that cannot be watched, or is not there yet, is polled.
        let _ = inotify.watches().add(place, mask);
    }
    inotify.into_event_stream(vec![0; BUFFER]).ok()
}

/// Links are followed: what counts is what would be read.
fn shape(path: &Path) -> Shape {
    let mut shape = Shape::new();
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if shape.len() >= NAMES_MAX {
                return shape;
            }
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let Ok(meta) = std::fs::metadata(&path) else { continue };
            if meta.is_dir() && depth == 0 {
                open.push((path.clone(), 1));
            }
            shape.push((path, meta.dev(), meta.ino(), meta.len(), meta.ctime(), meta.ctime_nsec()));
        }
    }
    shape.sort();
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `change` and waits until it is noticed; by events, since a poll comes later than the limit here.
    async fn noticed(directory: &mut Directory, what: &str, change: impl FnOnce()) {
        directory.arm();
        change();
        let limit = Instant::now() + MODULES_POLL * 10;
        timeout_at(limit, directory.changed()).await.unwrap_or_else(|_| panic!("not noticed: {what}"));
    }

    #[tokio::test]
    async fn m08_a_copy_a_swap_of_links_a_new_directory_and_a_removal_are_noticed() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("modules");
        let mut directory = Directory::new(path.clone());
        noticed(&mut directory, "the directory comes", || {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("a.toml"), "1").unwrap();
        })
        .await;
        noticed(&mut directory, "a copy", || std::fs::write(path.join("a.toml"), "2").unwrap()).await;
        // As the kubelet does it: a directory of its own, a link to it that is renamed over, links to what is in it.
        let version = |name: &str| {
            std::fs::create_dir(path.join(name)).unwrap();
            std::fs::write(path.join(name).join("b.toml"), name).unwrap();
            symlink(name, path.join("..data_tmp")).unwrap();
            std::fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();
        };
        noticed(&mut directory, "a mounted ConfigMap", || {
            version("..1");
            symlink("..data/b.toml", path.join("b.toml")).unwrap();
        })
        .await;
        noticed(&mut directory, "a swap of links", || version("..2")).await;
        noticed(&mut directory, "a module in a directory of its own", || {
            std::fs::create_dir(path.join("c")).unwrap();
            std::fs::write(path.join("c/module.toml"), "1").unwrap();
        })
        .await;
        noticed(&mut directory, "a change in that", || {
            std::fs::write(path.join("c/module.toml"), "2").unwrap();
        })
        .await;
        noticed(&mut directory, "a removal", || std::fs::remove_file(path.join("a.toml")).unwrap()).await;
    }
}
