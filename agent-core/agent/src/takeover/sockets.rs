//! The sockets that this agent serves: each a listener, and the session that accepts on it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

use aether_domain::takeover::{Identity, Socket};
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

/// What is served.
#[derive(Debug, Default)]
pub(super) struct Sockets(BTreeMap<Socket, Served>);

/// One listener of ours. Its session ends before it is closed here, so that no caller in its queue is lost while another
/// process holds a duplicate.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) listener: Arc<UnixListener>,
    pub(super) identity: Identity,
    /// Ends the session.
    pub(super) stop: CancellationToken,
    /// Is cancelled when the session has ended.
    pub(super) ended: CancellationToken,
}

impl Sockets {
    /// Takes a listener for a socket; the session on the one before it ends.
    pub(super) fn put(&mut self, socket: Socket, listener: Arc<UnixListener>, identity: Identity) {
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        if let Some(before) = self.0.insert(socket, Served { listener, identity, stop, ended }) {
            before.stop.cancel();
        }
    }

    /// Ends the session of a socket, whose listener stays; what tells that it has ended.
    pub(super) fn pause(&mut self, socket: Socket) -> Option<CancellationToken> {
        let served = self.0.get(&socket)?;
        served.stop.cancel();
        Some(served.ended.clone())
    }

    /// Makes ready for another session on a socket's listener.
    pub(super) fn again(&mut self, socket: Socket) -> Option<&Served> {
        let served = self.0.get_mut(&socket)?;
        served.stop = CancellationToken::new();
        served.ended = CancellationToken::new();
        Some(served)
    }

    pub(super) fn identities(&self) -> BTreeMap<Socket, Identity> {
        self.0.iter().map(|(socket, served)| (*socket, served.identity)).collect()
    }

    /// The listeners of `sockets`, in their order; none where one is missing.
    pub(super) fn descriptors(&self, sockets: impl Iterator<Item = Socket>) -> Option<Vec<BorrowedFd<'_>>> {
        sockets.map(|socket| self.0.get(&socket).map(|served| served.listener.as_fd())).collect()
    }
}
