//! flock(2) on a path that is never deleted (T01, I01).

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::atomic::WriteError;

/// An exclusive lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: OwnedFd,
    path: PathBuf,
}

/// Whether the path still names the locked file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Ours,
    /// It names another file, or none: somebody removed it by hand, and another process may lock its successor.
    Replaced,
}

impl Lock {
    /// Takes the lock if it is free; `None` when another process holds it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, WriteError> {
        Self::take_by(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// Waits for the lock on the calling thread.
    pub fn take(path: &Path) -> Result<Self, WriteError> {
        loop {
            if let Some(lock) = Self::take_by(path, FlockOperation::LockExclusive)? {
                return Ok(lock);
            }
        }
    }

    /// Compares the locked file with what the path names now (T01).
    pub fn standing(&self) -> Standing {
        match (fs::fstat(&self.file), fs::stat(&self.path)) {
            (Ok(held), Ok(named)) if (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino) => {
                Standing::Ours
            }
            _ => Standing::Replaced,
        }
    }

    /// Lets it go before the process ends. Whoever held it has no more to do with what it guards.
    pub fn let_go(&self) {
        // It cannot fail on a descriptor that was locked; if it did, the end of the process lets the lock go.
        let _ = fs::flock(&self.file, FlockOperation::Unlock);
    }

    fn take_by(path: &Path, how: FlockOperation) -> Result<Option<Self>, WriteError> {
        loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
            let fd = fs::open(path, flags, Mode::from_raw_mode(0o600))
                .map_err(|errno| WriteError::new("open the lock", path, errno))?;
            match fs::flock(&fd, how) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(WriteError::new("lock", path, errno)),
            }
            let lock = Self { file: fd, path: path.to_owned() };
            // A lock on a file that is gone is no lock: open and lock again.
            if lock.standing() == Standing::Ours {
                return Ok(Some(lock));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t07_a_lock_that_was_let_go_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let first = Lock::try_take(&path).unwrap().unwrap();
        first.let_go();
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn t01_the_second_taker_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let first = Lock::try_take(&path).unwrap().unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        drop(first);
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn t01_a_removed_lock_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l");
        let lock = Lock::try_take(&path).unwrap().unwrap();
        assert_eq!(lock.standing(), Standing::Ours);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(lock.standing(), Standing::Replaced);
        let second = Lock::try_take(&path).unwrap().unwrap();
        assert_eq!(second.standing(), Standing::Ours);
        assert_eq!(lock.standing(), Standing::Replaced);
    }
}
