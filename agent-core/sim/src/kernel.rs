//! What the node's kernel keeps: the lock's files, listening sockets with their queues, the paths that name them.

use std::collections::{BTreeMap, VecDeque};

use aether_domain::takeover::Socket;

/// A process; numbers are never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pid(pub(crate) u32);

/// Somebody on the node who is no agent.
pub(crate) const STRANGER: Pid = Pid(u32::MAX);

/// A file that was the lock at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockFile(pub(crate) u32);

/// A listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sock(pub(crate) u32);

/// What waits in a listener's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// A plugin's call, in its so manieth attempt.
    Call(usize, u32),
    /// A standby's connection.
    Link(u64),
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A socket.
    Socket(Sock),
    /// A file on which nobody can listen.
    Plain,
}

#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Who holds how many descriptors.
    pub(crate) holders: BTreeMap<Pid, u32>,
    pub(crate) queue: VecDeque<Waiting>,
}

#[derive(Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) lock_path: Option<LockFile>,
    pub(crate) locks: BTreeMap<LockFile, Option<Pid>>,
    pub(crate) waiters: VecDeque<(Pid, LockFile)>,
    pub(crate) paths: BTreeMap<Socket, Node>,
    pub(crate) sockets: BTreeMap<Sock, Listening>,
    last: u32,
}

impl Kernel {
    fn number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Opens the lock, makes it where the path names nothing.
    pub(crate) fn open_lock(&mut self) -> LockFile {
        if let Some(file) = self.lock_path {
            return file;
        }
        let file = LockFile(self.number());
        self.locks.insert(file, None);
        self.lock_path = Some(file);
        file
    }

    pub(crate) fn holder(&self, file: LockFile) -> Option<Pid> {
        self.locks.get(&file).copied().flatten()
    }

    pub(crate) fn take_lock(&mut self, file: LockFile, pid: Pid) -> bool {
        let free = self.holder(file).is_none();
        if free {
            self.locks.insert(file, Some(pid));
        }
        free
    }

    /// Lets every lock of `pid` go.
    pub(crate) fn release_locks(&mut self, pid: Pid) {
        self.waiters.retain(|(waiter, _)| *waiter != pid);
        for holder in self.locks.values_mut().filter(|holder| **holder == Some(pid)) {
            *holder = None;
        }
    }

    /// Whether `pid` holds the lock that the path names.
    pub(crate) fn owns(&self, pid: Pid) -> bool {
        self.lock_path.is_some_and(|file| self.holder(file) == Some(pid))
    }

    /// A new socket, bound and renamed over the path.
    pub(crate) fn bind(&mut self, socket: Socket, pid: Pid) -> Sock {
        let sock = Sock(self.number());
        self.sockets.insert(sock, Listening { holders: BTreeMap::from([(pid, 1)]), queue: VecDeque::new() });
        self.paths.insert(socket, Node::Socket(sock));
        sock
    }

    pub(crate) fn hold(&mut self, sock: Sock, pid: Pid) {
        if let Some(listening) = self.sockets.get_mut(&sock) {
            *listening.holders.entry(pid).or_insert(0) += 1;
        }
    }

    /// Closes one descriptor; returns the queue that was reset with the last one.
    pub(crate) fn close(&mut self, sock: Sock, pid: Pid) -> VecDeque<Waiting> {
        let Some(listening) = self.sockets.get_mut(&sock) else { return VecDeque::new() };
        if let Some(count) = listening.holders.get_mut(&pid) {
            *count -= 1;
            if *count == 0 {
                listening.holders.remove(&pid);
            }
        }
        if listening.holders.is_empty() { std::mem::take(&mut listening.queue) } else { VecDeque::new() }
    }

    /// Closes every descriptor of `pid`.
    pub(crate) fn close_all(&mut self, pid: Pid) -> VecDeque<Waiting> {
        let mut reset = VecDeque::new();
        for listening in self.sockets.values_mut() {
            if listening.holders.remove(&pid).is_some() && listening.holders.is_empty() {
                reset.extend(std::mem::take(&mut listening.queue));
            }
        }
        reset
    }

    /// The socket that a path names, where somebody listens on it.
    pub(crate) fn listening(&self, socket: Socket) -> Option<Sock> {
        match self.paths.get(&socket) {
            Some(Node::Socket(sock)) if self.is_live(*sock) => Some(*sock),
            Some(Node::Socket(_) | Node::Plain) | None => None,
        }
    }

    pub(crate) fn is_live(&self, sock: Sock) -> bool {
        self.sockets.get(&sock).is_some_and(|listening| !listening.holders.is_empty())
    }

    pub(crate) fn holders(&self, sock: Sock) -> impl Iterator<Item = Pid> {
        self.sockets.get(&sock).into_iter().flat_map(|listening| listening.holders.keys().copied())
    }
}
