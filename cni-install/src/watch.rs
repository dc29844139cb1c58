//! Waiting until something happens in a directory, but never longer than a bound.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

/// The longest that a change goes unnoticed: events can be missed (a full queue, a replaced directory), and there may
/// be no watch to have at all.
pub const POLL: Duration = Duration::from_secs(1);

/// A watch on a directory, from when it is armed.
#[derive(Debug)]
pub struct Watch(Option<OwnedFd>);

impl Watch {
    /// Begins to watch. Where no watch is to be had (no directory, or no more watches), waiting is polling.
    pub fn arm(dir: &Path) -> Self {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).and_then(|fd| {
            let flags = WatchFlags::CLOSE_WRITE | WatchFlags::MOVE | WatchFlags::DELETE | WatchFlags::CREATE;
            inotify::add_watch(&fd, dir, flags).map(|_| fd)
        });
        Self(watch.ok())
    }

    /// Waits for a change since [`Self::arm`], at most [`POLL`].
    pub fn wait(self) {
        let timeout = Timespec { tv_sec: i64::try_from(POLL.as_secs()).unwrap_or(1), tv_nsec: 0 };
        let mut fds: Vec<PollFd<'_>> = self.0.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // A signal only ends the wait early.
        let _ = event::poll(&mut fds, Some(&timeout));
    }
}
