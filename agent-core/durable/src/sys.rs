//! The one call that rustix does not offer: a lease, by which the kernel tells whether somebody has a file open to write.
#![allow(unsafe_code, reason = "fcntl(2) with a number for an argument; nothing is dereferenced")]

use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Sets or clears a lease on `file`; the error is the kernel's.
pub(crate) fn set_lease(file: BorrowedFd<'_>, kind: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the descriptor is borrowed, so it is open; the command takes a plain number.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
    if result == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
