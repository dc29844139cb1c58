//! Looking at pods' network namespaces: is one there, which one is it, and does it hold an interface.
//!
//! **Invariant:** no function here leaves the calling thread in another namespace, and none waits on a pipe or a device
//! that stands where a namespace should.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::LinkNameSpaceType;

/// The file system of namespaces, as `fstatfs` names it (`NSFS_MAGIC` of linux/magic.h).
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// What stands at the path of a namespace (S06).
#[derive(Debug)]
pub enum Seen {
    /// A namespace.
    Namespace {
        /// Its inode number, which no other living namespace has.
        inode: u64,
        /// When its inode was made, seconds since 1970; 0 when that lies before.
        created_secs: u64,
    },
    /// Nothing, and the directory that would hold it is there.
    Missing,
    /// Something else: a plain file is what a mount leaves where it cannot be seen, and a link that leads nowhere is no
    /// sign either.
    NotANamespace,
    /// The directory that would hold it is not there, so nothing can be said.
    ParentMissing,
    /// It could not be looked at.
    Error(std::io::Error),
}

/// Looks at what stands at `path`, a link followed.
pub fn look(path: &Path) -> Seen {
    // O_PATH opens anything without waiting, and takes no reference that would keep a namespace alive for longer.
    let fd = match fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT | Errno::NOTDIR) => return absent(path),
        Err(errno) => return Seen::Error(errno.into()),
    };
    match identify(&fd) {
        Ok(seen) => seen,
        Err(errno) => Seen::Error(errno.into()),
    }
}

fn absent(path: &Path) -> Seen {
    if fs::lstat(path).is_ok() {
        return Seen::NotANamespace;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::stat(parent) {
        Ok(stat) if fs::FileType::from_raw_mode(stat.st_mode).is_dir() => Seen::Missing,
        Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => Seen::ParentMissing,
        Err(errno) => Seen::Error(errno.into()),
    }
}

fn identify(fd: &OwnedFd) -> Result<Seen, Errno> {
    if u64::try_from(fs::fstatfs(fd)?.f_type) != Ok(NSFS_MAGIC) {
        return Ok(Seen::NotANamespace);
    }
    let stat = fs::fstat(fd)?;
    Ok(Seen::Namespace { inode: stat.st_ino, created_secs: u64::try_from(stat.st_ctime).unwrap_or(0) })
}

/// Why a namespace was not entered, or not asked.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    /// What stands at the path is no namespace.
    #[error("{path} is no network namespace")]
    NotANamespace {
        /// The path.
        path: PathBuf,
    },
    /// A step failed.
    #[error("cannot {operation} {path}")]
    Failed {
        /// What was tried: `open`, `enter`, ...
        operation: &'static str,
        /// The namespace.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// Whether the network namespace at `path` holds an interface named `ifname`.
pub fn has_interface(path: &Path, ifname: &str) -> Result<bool, EnterError> {
    let failed = |operation, source| EnterError::Failed { operation, path: path.to_owned(), source };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let namespace = fs::open(path, flags, Mode::empty()).map_err(|errno| failed("open", errno.into()))?;
    match identify(&namespace) {
        Ok(Seen::Namespace { .. }) => {}
        Ok(_) => return Err(EnterError::NotANamespace { path: path.to_owned() }),
        Err(errno) => return Err(failed("look at", errno.into())),
    }
    // A namespace belongs to a thread. A fresh one is entered and ends with the answer, so there is no way back to fail.
    let asked = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .spawn_scoped(scope, || ask(&namespace, ifname))
            .map_err(|source| ("start a thread for", source))?;
        thread.join().unwrap_or_else(|_| Err(("ask", std::io::Error::other("the asking thread panicked"))))
    });
    asked.map_err(|(operation, source)| failed(operation, source))
}

fn ask(namespace: &OwnedFd, ifname: &str) -> Result<bool, (&'static str, std::io::Error)> {
    use std::os::fd::AsFd as _;
    rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|errno| ("enter", errno.into()))?;
    // Any socket tells of the interfaces of the namespace it was made in; this family is in every kernel.
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
        .map_err(|errno| ("make a socket in", errno.into()))?;
    match rustix::net::netdevice::name_to_index(&socket, ifname) {
        Ok(_) => Ok(true),
        Err(Errno::NODEV | Errno::NXIO) => Ok(false),
        Err(errno) => Err(("ask for the interface in", errno.into())),
    }
}
