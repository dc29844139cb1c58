//! Whether somebody else has a file open to write (C02).

use std::os::fd::BorrowedFd;

use crate::sys;

/// What the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nobody has it open to write.
    None,
    /// Somebody has.
    Some,
    /// It cannot be told: the file system knows no leases, or the file belongs to another user and the capability LEASE
    /// is missing.
    Unknown,
}

/// Asks about `file`, which is itself open to read only.
pub fn of(file: BorrowedFd<'_>) -> Writers {
    // A writer that opens the file while the lease stands has a signal sent to us. By default that is SIGIO, which ends the
    // process; SIGURG is ignored.
    if sys::set_signal(file, libc::SIGURG).is_err() {
        return Writers::Unknown;
    }
    match sys::set_lease(file, libc::F_RDLCK) {
        Ok(()) => {
            // Held for no longer than the question: a writer that comes would wait for it.
            let _ = sys::set_lease(file, libc::F_UNLCK);
            Writers::None
        }
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Writers::Some,
        Err(_) => Writers::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn c02_a_writer_that_comes_while_it_is_asked_is_let_in_and_nobody_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"a").unwrap();
        let held = std::fs::File::open(&path).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2000 {
                    std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                }
                done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            while !done.load(std::sync::atomic::Ordering::SeqCst) {
                assert_ne!(of(held.as_fd()), Writers::Unknown);
            }
        });
    }

    #[test]
    fn c02_a_writer_is_seen_until_it_closes_also_where_the_name_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, b"a").unwrap();
        let held = std::fs::File::open(&path).unwrap();
        assert_eq!(of(held.as_fd()), Writers::None);
        let writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(of(held.as_fd()), Writers::Some);
        drop(writer);
        assert_eq!(of(held.as_fd()), Writers::None);
    }
}
