//! Standard output.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use crate::environment::Command;

/// What this process may still print: one document, once (K02).
#[derive(Debug, Default)]
pub struct Output {
    printed: AtomicBool,
    deleting: AtomicBool,
}

impl Output {
    /// Tells that the call is a DEL, which succeeds whatever happens (K07).
    pub fn serve(&self, command: Command) {
        self.deleting.store(command == Command::Del, Ordering::Relaxed);
    }

    /// Whether the call is a DEL.
    pub fn deleting(&self) -> bool {
        self.deleting.load(Ordering::Relaxed)
    }

    /// Writes the document to standard output, unless there was one.
    pub fn print(&self, document: &str) -> std::io::Result<()> {
        if self.printed.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        write_all(rustix::stdio::stdout(), document.as_bytes()).map_err(Into::into)
    }
}

/// Writes everything, also to a pipe that somebody made non-blocking.
fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
