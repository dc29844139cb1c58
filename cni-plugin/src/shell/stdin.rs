//! Standard input, bounded in size and time (K02, K07).

use std::time::{Duration, Instant};

use aether_domain::limits;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::config::{Incomplete, Input};

/// How much is read at once, in bytes.
const CHUNK: usize = 8 * 1024;

/// Reads standard input until it ends, for at most `wait`.
pub(super) fn read(wait: Duration) -> Input {
    let until = Instant::now() + wait;
    let fd = rustix::stdio::stdin();
    let mut bytes = Vec::new();
    let problem = loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => break Some(Incomplete::TimedOut(wait)),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => break Some(failed(errno)),
        }
        if bytes.capacity() - bytes.len() < CHUNK {
            bytes.reserve(CHUNK);
        }
        match rustix::io::read(fd, spare_capacity(&mut bytes)) {
            Ok(0) => break None,
            Ok(_) if bytes.len() > limits::STDIN_MAX => break Some(Incomplete::TooLarge),
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => break Some(failed(errno)),
        }
        // One who writes without end is cut off in time, too.
        if Instant::now() >= until {
            break Some(Incomplete::TimedOut(wait));
        }
    };
    Input { bytes, problem }
}

fn failed(errno: Errno) -> Incomplete {
    Incomplete::Failed(std::io::Error::from(errno).to_string())
}
