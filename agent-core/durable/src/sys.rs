//! The one call that rustix does not offer: a lease, by which the kernel tells whether somebody has a file open to write.
#![allow(unsafe_code, reason = "fcntl(2) with a number for an argument; nothing is dereferenced")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Sets or clears a lease on `file`; the error is the kernel's.
pub(crate) fn set_lease(file: BorrowedFd<'_>, kind: libc::c_int) -> std::io::Result<()> {
    control(file, libc::F_SETLEASE, kind)
}

/// Chooses the signal that says that a lease is in somebody's way.
pub(crate) fn set_signal(file: BorrowedFd<'_>, signal: libc::c_int) -> std::io::Result<()> {
    control(file, F_SETSIG, signal)
}

/// Linux's number on every architecture; libc does not name it everywhere.
const F_SETSIG: libc::c_int = 10;

fn control(file: BorrowedFd<'_>, command: libc::c_int, argument: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the descriptor is borrowed, so it is open; both commands take a plain number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, argument) };
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
