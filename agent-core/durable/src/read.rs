//! Reading a file that others may have made: bounded, and never waiting on a pipe or a device.

use std::io::Read as _;
use std::path::Path;

use rustix::fs::{self, FileType, Mode, OFlags};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be opened or read.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is a directory, a pipe, a device or a socket.
    #[error("{path} is no regular file")]
    NotAFile {
        /// The path.
        path: std::path::PathBuf,
    },
    /// It is larger than what such a file can be.
    #[error("{path} is larger than {max} bytes")]
    TooLarge {
        /// The file.
        path: std::path::PathBuf,
        /// The bound.
        max: usize,
    },
}

/// A file's content, and who can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its owner.
    pub uid: u32,
    /// Its permission bits.
    pub mode: u32,
}

/// Reads the regular file at `path`, of at most `max` bytes; `None` when there is none.
pub fn bounded(path: &Path, max: usize) -> Result<Option<Vec<u8>>, ReadError> {
    Ok(owned(path, max)?.map(|owned| owned.bytes))
}

/// Like [`bounded`], and says whose the file is that was read.
pub fn owned(path: &Path, max: usize) -> Result<Option<Owned>, ReadError> {
    let io = |source: std::io::Error| ReadError::Io { path: path.to_owned(), source };
    // NONBLOCK: opening a pipe that nobody writes must not wait.
    let fd = match fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()) {
        Ok(fd) => fd,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(io(errno.into())),
    };
    let stat = fs::fstat(&fd).map_err(|errno| io(errno.into()))?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    std::fs::File::from(fd).take(limit).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() > max {
        return Err(ReadError::TooLarge { path: path.to_owned(), max });
    }
    Ok(Some(Owned { bytes, uid: stat.st_uid, mode: stat.st_mode & 0o7777 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_its_bound_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert!(bounded(&path, 3).unwrap().is_none());
        std::fs::write(&path, b"abc").unwrap();
        assert_eq!(bounded(&path, 3).unwrap().unwrap(), b"abc");
        assert!(matches!(bounded(&path, 2), Err(ReadError::TooLarge { .. })));
        assert!(matches!(bounded(dir.path(), 2), Err(ReadError::NotAFile { .. })));
        let pipe = dir.path().join("p");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(matches!(bounded(&pipe, 2), Err(ReadError::NotAFile { .. })));
    }
}
