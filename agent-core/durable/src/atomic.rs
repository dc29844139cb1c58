//! Replacing and removing a file: temporary file beside it, fsync, rename, fsync of the directory (I03).

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::attributes::Attributes;

/// Why a file was not replaced or removed. Whatever the variant says, the old content stands.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path} as uid {uid}{}", .mode.map(|m| format!(" (mode {m:04o})")).unwrap_or_default())]
pub struct WriteError {
    /// What was tried: `create`, `write`, `fsync`, `rename`, ...
    pub operation: &'static str,
    /// On what.
    pub path: PathBuf,
    /// As whom.
    pub uid: u32,
    /// The mode of the directory or file in the way, where it could be read.
    pub mode: Option<u32>,
    /// Why it failed.
    #[source]
    pub source: std::io::Error,
}

impl WriteError {
    pub(crate) fn new(operation: &'static str, path: &Path, errno: Errno) -> Self {
        let mode = fs::stat(path).ok().map(|stat| stat.st_mode & 0o7777);
        let uid = rustix::process::geteuid().as_raw();
        Self { operation, path: path.to_owned(), uid, mode, source: errno.into() }
    }

    /// Whether the disk was full or over quota.
    pub fn is_full(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(code) if code == Errno::NOSPC.raw_os_error() || code == Errno::DQUOT.raw_os_error())
    }
}

/// What a removal found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// The file was there and is gone.
    Yes,
    /// There was none.
    Absent,
}

/// What a conditional replacement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// The new file stands.
    Yes,
    /// The condition no longer held; the old file stands.
    No,
}

/// Puts `bytes` at `path` with `attributes`, whole or not at all: when this returns `Ok`, the file is on the disk under
/// its name; when it returns `Err`, the old file stands and no temporary one is left (but for a failed fsync of the
/// directory, after which the new file stands and may not survive a loss of power).
pub fn replace(path: &Path, bytes: &[u8], attributes: &Attributes) -> Result<(), WriteError> {
    replace_when(path, bytes, attributes, || true).map(|_| ())
}

/// As [`replace`], if `still` says so just before the rename, when all slow work is done (C02).
pub fn replace_when(
    path: &Path,
    bytes: &[u8],
    attributes: &Attributes,
    still: impl FnOnce() -> bool,
) -> Result<Replaced, WriteError> {
    replace_by(path, &temp_name(), bytes, attributes, still)
}

/// As [`replace`], for a directory that others write too, so that [`sweep_temporaries`] cannot be used there: the
/// temporary file has one name, made from the file's, and one left by a killed run is overwritten. The writers of
/// this file are excluded by a lock.
pub fn replace_locked(path: &Path, bytes: &[u8], attributes: &Attributes) -> Result<(), WriteError> {
    sweep_temporary_of(path)?;
    replace_by(path, &temp_name_of(path)?, bytes, attributes, || true).map(|_| ())
}

/// Removes the temporary file that a killed [`replace_locked`] of `path` left.
pub fn sweep_temporary_of(path: &Path) -> Result<Removed, WriteError> {
    remove(&path.with_file_name(temp_name_of(path)?))
}

/// Waits until what was renamed and removed in `directory` before, by whomever, is on the disk.
pub fn sync_dir(directory: &Path) -> Result<(), WriteError> {
    fs::fsync(open_dir(directory)?).map_err(|errno| WriteError::new("fsync", directory, errno))
}

/// Has everybody who watches `directory` look at it again: a hidden file is written and removed.
pub fn poke(directory: &Path) -> Result<(), WriteError> {
    let dir = open_dir(directory)?;
    let temp = temp_name();
    let shown = directory.join(&temp);
    let staged = stage(&dir, &temp, &shown, b"\n", &Attributes::with_mode(0o600));
    let removed =
        fs::unlinkat(&dir, &temp, AtFlags::empty()).map_err(|errno| WriteError::new("remove", &shown, errno));
    staged.and(removed)
}

fn replace_by(
    path: &Path,
    temp: &OsString,
    bytes: &[u8],
    attributes: &Attributes,
    still: impl FnOnce() -> bool,
) -> Result<Replaced, WriteError> {
    let (directory, name) = split(path)?;
    let dir = open_dir(directory)?;
    let shown = directory.join(temp);
    let renamed = stage(&dir, temp, &shown, bytes, attributes).and_then(|()| {
        if !still() {
            return Ok(Replaced::No);
        }
        fs::renameat(&dir, temp, &dir, &name)
            .map(|()| Replaced::Yes)
            .map_err(|errno| WriteError::new("rename over", path, errno))
    });
    if let Ok(Replaced::Yes) = renamed {
        fs::fsync(&dir).map_err(|errno| WriteError::new("fsync", directory, errno))?;
    } else {
        // The temporary file is of no use to anybody; that it cannot be removed says nothing new.
        let _ = fs::unlinkat(&dir, temp, AtFlags::empty());
    }
    renamed
}

/// Removes `path` and waits until the directory says so on the disk.
pub fn remove(path: &Path) -> Result<Removed, WriteError> {
    let (directory, name) = split(path)?;
    let dir = match open_dir(directory) {
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => return Ok(Removed::Absent),
        other => other?,
    };
    match fs::unlinkat(&dir, &name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(Removed::Absent),
        Err(errno) => Err(WriteError::new("remove", path, errno)),
        Ok(()) => {
            fs::fsync(&dir).map_err(|errno| WriteError::new("fsync", directory, errno))?;
            Ok(Removed::Yes)
        }
    }
}

/// Removes several files of one directory and waits once until the directory says so on the disk; returns how many
/// were there. An error leaves some of them: the call can be made again.
pub fn remove_all<N: AsRef<std::ffi::OsStr>>(
    directory: &Path,
    names: impl IntoIterator<Item = N>,
) -> Result<usize, WriteError> {
    let dir = match open_dir(directory) {
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        other => other?,
    };
    let mut removed = 0;
    let mut failed = None;
    for name in names {
        match fs::unlinkat(&dir, name.as_ref(), AtFlags::empty()) {
            Ok(()) => removed += 1,
            Err(Errno::NOENT) => {}
            Err(errno) => {
                failed = Some(WriteError::new("remove", &directory.join(name.as_ref()), errno));
                break;
            }
        }
    }
    // Also when nothing was there: an earlier call may have removed it and failed here.
    fs::fsync(&dir).map_err(|errno| WriteError::new("fsync", directory, errno))?;
    failed.map_or(Ok(removed), Err)
}

/// Renames `from` to `to` inside one directory and waits until the directory says so on the disk.
pub fn rename(from: &Path, to: &Path) -> Result<(), WriteError> {
    let (directory, _) = split(to)?;
    fs::rename(from, to).map_err(|errno| WriteError::new("rename", from, errno))?;
    let dir = open_dir(directory)?;
    fs::fsync(&dir).map_err(|errno| WriteError::new("fsync", directory, errno))
}

/// Makes `path` and its missing parents, each with `mode`; one that is there keeps its own.
pub fn create_dir_all(path: &Path, mode: u32) -> Result<(), WriteError> {
    match fs::stat(path) {
        Ok(stat) if fs::FileType::from_raw_mode(stat.st_mode).is_dir() => return Ok(()),
        Ok(_) => return Err(WriteError::new("use as a directory", path, Errno::NOTDIR)),
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(WriteError::new("look at", path, errno)),
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_dir_all(parent, mode)?;
    }
    match fs::mkdir(path, Mode::from_raw_mode(mode)) {
        Ok(()) => {
            let parent = parent.unwrap_or(Path::new("."));
            fs::fsync(open_dir(parent)?).map_err(|errno| WriteError::new("fsync", parent, errno))
        }
        Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(WriteError::new("create", path, errno)),
    }
}

/// Removes the temporary files of killed runs from `directory` and returns how many there were. Only for a directory
/// whose writers are all excluded, by a lock or by being this process.
pub fn sweep_temporaries(directory: &Path) -> Result<usize, WriteError> {
    let mut swept = 0;
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(0) };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(aether_domain::paths::TEMP_PREFIX);
        if ours && remove(&entry.path())? == Removed::Yes {
            swept += 1;
        }
    }
    Ok(swept)
}

fn stage(
    dir: &OwnedFd,
    temp: &OsString,
    shown: &Path,
    bytes: &[u8],
    attributes: &Attributes,
) -> Result<(), WriteError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    // 0600 until the owner is set: the content is nobody else's before that.
    let fd = fs::openat(dir, temp, flags, Mode::from_raw_mode(0o600))
        .map_err(|errno| WriteError::new("create a file in", shown.parent().unwrap_or(shown), errno))?;
    let mut file = std::fs::File::from(fd);
    file.write_all(bytes).map_err(|error| WriteError {
        operation: "write",
        path: shown.to_owned(),
        uid: rustix::process::geteuid().as_raw(),
        mode: None,
        source: error,
    })?;
    attributes.apply(file.as_fd(), shown)?;
    fs::fsync(&file).map_err(|errno| WriteError::new("fsync", shown, errno))
}

fn open_dir(path: &Path) -> Result<OwnedFd, WriteError> {
    fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| WriteError::new("open the directory", path, errno))
}

fn split(path: &Path) -> Result<(&Path, OsString), WriteError> {
    let name = path.file_name().ok_or_else(|| WriteError::new("name a file by", path, Errno::INVAL))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((directory, name.to_owned()))
}

fn temp_name_of(path: &Path) -> Result<OsString, WriteError> {
    let mut temp = OsString::from(aether_domain::paths::TEMP_PREFIX);
    temp.push(split(path)?.1);
    Ok(temp)
}

fn temp_name() -> OsString {
    let mut random = [0u8; 8];
    // A failure leaves zeros: O_EXCL then refuses a second file of that name, which is an error and no loss.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    format!("{}{:016x}", aether_domain::paths::TEMP_PREFIX, u64::from_ne_bytes(random)).into()
}

#[cfg(test)]
mod tests;
