//! Accepting connections, and going in peace: no new calls, those in flight finished, then the connections closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aether_api::cni::cni_server::CniServer;
use aether_domain::limits::{ADDS_MAX, CALL_BYTES_MAX, CALLS_MAX, CONNECTIONS_MAX, DRAIN_LINGER};
use aether_domain::pods::PodService;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::Calls;
use crate::handler::Handler;
use crate::peer::{Connection, Refused};

/// The pause after a failure to accept (no descriptors left, usually), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How many calls one connection may have open. The plugin makes one.
const STREAMS_MAX: u32 = 1024;

/// The CNI service, before and while it serves.
pub struct Server<S> {
    service: Arc<S>,
    calls: Arc<dyn Calls>,
    version: String,
    handle: Handle,
}

/// Tells the server to go, and how far it is. Clones are of the same server.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) draining: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) adds: Arc<Semaphore>,
    pub(crate) others: Arc<Semaphore>,
}

/// Why the server ended although nobody told it to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener is of no use any more.
    #[error("the CNI service cannot accept connections any more")]
    Accept(#[source] io::Error),
    /// The server failed.
    #[error("the CNI service ended")]
    Server(#[source] tonic::transport::Error),
}

impl<S: PodService> Server<S> {
    /// A server of `service` that answers STATUS with `version`.
    pub fn new(service: Arc<S>, calls: Arc<dyn Calls>, version: impl Into<String>) -> Self {
        let shared = Shared {
            draining: CancellationToken::new(),
            tasks: TaskTracker::new(),
            adds: Arc::new(Semaphore::new(ADDS_MAX)),
            others: Arc::new(Semaphore::new(CALLS_MAX)),
        };
        Self { service, calls, version: version.into(), handle: Handle { shared: Arc::new(shared) } }
    }

    /// A handle of this server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves until it is drained ([`Handle::drain`]); returns when nothing is in flight and the answers are out. The
    /// listener stays open until then: a caller in its queue hears that it should try again instead of a reset.
    pub async fn serve(self, listener: UnixListener) -> Result<(), ServeError> {
        let handle = self.handle.clone();
        let calls = Arc::clone(&self.calls);
        let lost: Arc<std::sync::Mutex<Option<io::Error>>> = Arc::default();
        let incoming = accept(listener, calls, Arc::clone(&lost));
        let service = CniServer::new(Handler::new(self.service, self.calls, self.version, handle.clone()))
            .max_decoding_message_size(CALL_BYTES_MAX);
        let server = tonic::transport::Server::builder()
            .max_concurrent_streams(STREAMS_MAX)
            .add_service(service)
            .serve_with_incoming_shutdown(incoming, handle.clone().drained());
        let lingering = async {
            handle.clone().drained().await;
            tokio::time::sleep(DRAIN_LINGER).await;
        };
        tokio::select! {
            ended = server => ended.map_err(ServeError::Server)?,
            // A connection that never ends its request would keep us for ever; its caller is reset and tries again.
            () = lingering => tracing::debug!("connections that did not end in time are closed"),
        }
        // Its handlers are gone with it, their work may not be: a lost listener ends the server in the middle of calls.
        handle.shared.tasks.close();
        handle.shared.tasks.wait().await;
        let lost = lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        lost.map_or(Ok(()), |error| Err(ServeError::Accept(error)))
    }
}

impl Handle {
    /// From now on every new call hears UNAVAILABLE, which the plugin tries again. It cannot be taken back.
    pub fn drain(&self) {
        self.shared.draining.cancel();
        self.shared.tasks.close();
    }

    /// Waits until the server is drained and nothing is in flight.
    pub async fn drained(self) {
        self.shared.draining.cancelled().await;
        self.shared.tasks.wait().await;
    }

    /// How many ADDs are in flight.
    pub fn adds_in_flight(&self) -> usize {
        ADDS_MAX.saturating_sub(self.shared.adds.available_permits())
    }

    /// How many calls are in flight, ADDs among them.
    pub fn in_flight(&self) -> usize {
        self.shared.tasks.len()
    }
}

fn accept(
    listener: UnixListener,
    calls: Arc<dyn Calls>,
    lost: Arc<std::sync::Mutex<Option<io::Error>>>,
) -> impl futures_core::Stream<Item = Result<Connection, std::convert::Infallible>> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let failing = AtomicBool::new(false);
    async_stream::stream! {
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    failing.store(false, Ordering::Relaxed);
                    match Connection::admit(stream, place) {
                        Ok(connection) => yield Ok(connection),
                        Err(refused) => {
                            refuse(&*calls, &refused);
                        }
                    }
                }
                Err(error) if is_final(&error) => {
                    *lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                    return;
                }
                Err(error) => {
                    if !failing.swap(true, Ordering::Relaxed) {
                        tracing::error!(%error, "cannot accept on the CNI socket; trying on (out of descriptors? raise its limit)");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

fn refuse(calls: &dyn Calls, refused: &Refused) {
    calls.peer_refused();
    tracing::warn!(%refused, "refused a connection to the CNI socket");
}

/// Whether the listener itself is broken. Everything else passes: a caller that left, descriptors or memory run out.
fn is_final(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    of(Errno::BADF) || of(Errno::INVAL) || of(Errno::NOTSOCK) || of(Errno::OPNOTSUPP)
}
