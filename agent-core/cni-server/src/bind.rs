//! Binding the socket so that its path never names nothing, and never a socket that others may use (T08, O04).

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use aether_domain::paths::TEMP_PREFIX;
use rustix::fs::{self, FileType, Mode};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// How many connections wait to be accepted: more than all ADDs that may be in flight. The kernel cuts it to
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// The only mode: root's.
const SOCKET_MODE: u32 = 0o600;

/// Why a socket was not bound. What stood at the path stands there still.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Something that is no socket is in the way.
    #[error(
        "cannot bind {path}: {what} is in the way, and only a socket is replaced; look who made it, and remove it"
    )]
    InTheWay {
        /// The socket's path.
        path: PathBuf,
        /// What is there.
        what: &'static str,
    },
    /// The kernel allows no such long path.
    #[error(
        "cannot bind {path}: a socket's path holds at most 107 bytes, temporary name included; use a shorter run directory"
    )]
    TooLong {
        /// The socket's path.
        path: PathBuf,
    },
    /// A step failed.
    #[error("cannot bind {path}: cannot {operation}")]
    Step {
        /// The socket's path.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// Binds `path`: a temporary name beside it, mode 0600 before anybody can connect, renamed over what is there. Only for
/// the owner of the node lock: leftovers of killed owners are removed.
pub fn bind(path: &Path) -> Result<UnixListener, BindError> {
    let step = |operation| {
        move |errno: Errno| BindError::Step { path: path.to_owned(), operation, source: errno.into() }
    };
    let in_the_way = |what| Err(BindError::InTheWay { path: path.to_owned(), what });
    match fs::lstat(path).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Socket) | Err(Errno::NOENT) => {}
        Ok(FileType::Directory) => return in_the_way("a directory"),
        Ok(FileType::RegularFile) => return in_the_way("a regular file"),
        Ok(FileType::Symlink) => return in_the_way("a symbolic link"),
        Ok(_) => return in_the_way("a pipe or device"),
        Err(errno) => return Err(step("look at what is there")(errno)),
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    sweep(directory, path);
    let mut random = [0u8; 4];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(step("get a random name"))?;
    let temporary = directory.join(format!("{TEMP_PREFIX}{:08x}", u32::from_ne_bytes(random)));
    let address =
        SocketAddrUnix::new(&temporary).map_err(|_| BindError::TooLong { path: path.to_owned() })?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(step("make a socket"))?;
    net::bind(&socket, &address).map_err(step("bind a temporary name beside it"))?;
    let placed = fs::chmod(&temporary, Mode::from_raw_mode(SOCKET_MODE))
        .map_err(step("set its mode to 0600"))
        // Nobody can connect before this.
        .and_then(|()| net::listen(&socket, BACKLOG).map_err(step("listen")))
        .and_then(|()| fs::rename(&temporary, path).map_err(step("rename the temporary name over it")));
    if placed.is_err() {
        // Of no use to anybody; that it cannot be removed says nothing new.
        let _ = fs::unlink(&temporary);
    }
    placed.map(|()| UnixListener::from(socket))
}

/// Removes sockets that killed owners left under temporary names.
fn sweep(directory: &Path, path: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_bytes().starts_with(TEMP_PREFIX.as_bytes());
        let socket =
            fs::lstat(entry.path()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_socket());
        if ours && socket && fs::unlink(entry.path()).is_ok() {
            tracing::debug!(socket = %path.display(), left = %entry.path().display(), "removed a killed owner's socket");
        }
    }
}
