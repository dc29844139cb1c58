//! Binding a socket so that its path never names nothing, and never a socket that others may use (T08, O04); and what such
//! a path names (T13).

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use aether_domain::paths::TEMP_PREFIX;
use aether_domain::takeover::Identity;
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

/// A listener, and which file its path named right after the bind (T13).
#[derive(Debug)]
pub struct Bound {
    /// The listener; it does not block.
    pub listener: UnixListener,
    /// The file.
    pub identity: Identity,
}

/// Binds `path`: a temporary name beside it, mode 0600 before anybody can connect, renamed over what is there. In a
/// directory that is shared only for the owner of the node lock: leftovers of killed owners are removed.
pub fn bind(path: &Path) -> Result<Bound, BindError> {
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
    sweep(directory);
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
        // Under the temporary name, which nobody else takes: the rename keeps the file.
        .and_then(|()| fs::lstat(&temporary).map_err(step("tell which file it is")))
        .and_then(|stat| {
            fs::rename(&temporary, path).map_err(step("rename the temporary name over it"))?;
            Ok(Identity { dev: stat.st_dev, ino: stat.st_ino })
        });
    match placed {
        Ok(identity) => Ok(Bound { listener: UnixListener::from(socket), identity }),
        Err(error) => {
            // Of no use to anybody; that it cannot be removed says nothing new.
            let _ = fs::unlink(&temporary);
            Err(error)
        }
    }
}

/// Makes a handed-over listener this process's: `SO_PEERCRED` names whoever called `listen` last (T08).
pub fn adopt(descriptor: OwnedFd) -> io::Result<UnixListener> {
    net::listen(&descriptor, BACKLOG)?;
    // The flag is the open file's, and so was the predecessor's already; a stranger's is not trusted for it.
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    Ok(UnixListener::from(descriptor))
}

/// Which file a path names, without following a link; `None`: none, or it cannot be told.
pub fn identity(path: &Path) -> Option<Identity> {
    fs::lstat(path).ok().map(|stat| Identity { dev: stat.st_dev, ino: stat.st_ino })
}

/// Who may call on the sockets that are not for everybody: root, and whoever this process runs as (O04).
pub fn may_call(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// What a connection to a path found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Nobody: nothing is there, or nobody listens on it.
    Nobody,
    /// Somebody listens.
    Somebody {
        /// Its process, where the kernel tells.
        pid: Option<u32>,
    },
}

/// Whether somebody listens on a path (T06). Does not block.
pub fn ask(path: &Path) -> Answers {
    match connect(path) {
        Ok(stream) => {
            let pid = net::sockopt::socket_peercred(stream.as_fd()).ok();
            let pid = pid.and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok());
            Answers::Somebody { pid }
        }
        // A full queue is somebody who is slow.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Answers::Somebody { pid: None },
        // Refused or missing is nobody; anything else is nothing that answers, and the bind says what is in the way.
        Err(_) => Answers::Nobody,
    }
}

/// Connects without blocking; a full queue is `WouldBlock`.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Removes sockets that killed owners left under temporary names.
fn sweep(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_bytes().starts_with(TEMP_PREFIX.as_bytes());
        let socket =
            fs::lstat(entry.path()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_socket());
        if ours && socket {
            // One that stays is in nobody's way.
            let _ = fs::unlink(entry.path());
        }
    }
}
