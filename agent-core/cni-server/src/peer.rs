//! Who is at the other end: root, and still there.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use aether_domain::pods::{Caller, Presence};
use aether_durable::descriptors;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::transport::server::Connected;

/// A connection that was let in. It alone keeps the socket open: a call that outlives it only holds a weak reference.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Arc<UnixStream>,
    fresh: Arc<Fresh>,
    _place: OwnedSemaphorePermit,
}

/// As long as it holds its token, nothing has been called on the connection: its caller has connected and is about to.
#[derive(Debug)]
struct Fresh(Mutex<Option<TaskTrackerToken>>);

impl Fresh {
    fn called(&self) {
        // Whole at every moment that the lock is released, by a panic too.
        let token = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(token);
    }
}

/// What a call knows of its connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    stream: Weak<UnixStream>,
    fresh: Weak<Fresh>,
}

/// Whoever waits for one call's answer.
#[derive(Debug)]
pub(crate) struct Waiter {
    peer: Option<Peer>,
    gave_up: AtomicBool,
}

/// Says that the caller gave up when it is dropped, with the handler that it lives in.
#[derive(Debug)]
pub(crate) struct GivesUp(pub(crate) Arc<Waiter>);

/// Why a connection was not let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("uid {0} may not call; only root may")]
    NotRoot(u32),
    #[error("cannot tell who calls")]
    Unknown(#[source] io::Error),
}

impl Connection {
    /// Lets root in (O04).
    pub(crate) fn admit(
        stream: UnixStream,
        place: OwnedSemaphorePermit,
        fresh: TaskTrackerToken,
    ) -> Result<Self, Refused> {
        let fresh = Arc::new(Fresh(Mutex::new(Some(fresh))));
        match stream.peer_cred().map_err(Refused::Unknown)?.uid() {
            0 => Ok(Self { stream: Arc::new(stream), fresh, _place: place }),
            uid => Err(Refused::NotRoot(uid)),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        Peer { stream: Arc::downgrade(&self.stream), fresh: Arc::downgrade(&self.fresh) }
    }
}

impl Waiter {
    pub(crate) fn new(peer: Option<Peer>) -> Arc<Self> {
        Arc::new(Self { peer, gave_up: AtomicBool::new(false) })
    }

    /// The connection's call has come.
    pub(crate) fn calls(&self) {
        if let Some(peer) = &self.peer {
            peer.calls();
        }
    }
}

impl Drop for GivesUp {
    fn drop(&mut self) {
        self.0.gave_up.store(true, Ordering::SeqCst);
    }
}

impl Caller for Waiter {
    /// The flag covers a caller that reset its call; the socket one that died: the kernel knows at once, the server's
    /// tasks only when they run.
    fn presence(&self) -> Presence {
        let closed = self.peer.as_ref().is_some_and(Peer::is_closed);
        if closed || self.gave_up.load(Ordering::SeqCst) { Presence::Gone } else { Presence::Here }
    }
}

impl Peer {
    fn calls(&self) {
        if let Some(fresh) = self.fresh.upgrade() {
            fresh.called();
        }
    }

    fn is_closed(&self) -> bool {
        self.stream.upgrade().is_none_or(|stream| descriptors::is_closed(&*stream))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buffer.initialize_unfilled()) {
                Ok(read) => {
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Write) {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Poll::Ready(Ok(())),
            Err(errno) => Poll::Ready(Err(errno.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn k16_a_closed_connection_is_seen_before_any_task_of_the_server_runs() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let stream = Arc::new(ours);
        let waiter = Waiter::new(Some(Peer { stream: Arc::downgrade(&stream), fresh: Weak::new() }));
        assert_eq!(waiter.presence(), Presence::Here);
        // Bytes that nobody has read yet are no reason to think that it left.
        theirs.try_write(b"more").unwrap();
        assert_eq!(waiter.presence(), Presence::Here);
        drop(theirs);
        assert_eq!(waiter.presence(), Presence::Gone);
    }

    #[tokio::test]
    async fn k16_a_call_that_outlives_its_connection_does_not_hold_it_open() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let stream = Arc::new(ours);
        let waiter = Waiter::new(Some(Peer { stream: Arc::downgrade(&stream), fresh: Weak::new() }));
        drop(stream);
        assert_eq!(waiter.presence(), Presence::Gone);
    }

    #[test]
    fn k16_a_handler_that_is_dropped_says_that_nobody_waits() {
        let gives_up = GivesUp(Waiter::new(None));
        let waiter = Arc::clone(&gives_up.0);
        assert_eq!(waiter.presence(), Presence::Here);
        drop(gives_up);
        assert_eq!(waiter.presence(), Presence::Gone);
    }
}
