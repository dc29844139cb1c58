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
