//! Accepting connections, and leaving off in peace: no new ones, those that stand finished, the rest left in the queue.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aether_api::cni::cni_server::CniServer;
use aether_domain::limits::{
    ACCEPT_PAUSE, ADDS_MAX, CALL_BYTES_MAX, CALLER_WAIT, CALLS_MAX, CONNECTIONS_MAX, DRAIN_LINGER,
};
use aether_domain::pods::PodService;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::Calls;
use crate::handler::Handler;
use crate::peer::{Connection, Refused};

/// How many calls one connection may have open. The plugin makes one.
const STREAMS_MAX: u32 = 1024;

/// The CNI service. Each [`Server::serve`] is a session on a listener: another may follow on the same one, also in another
/// process, and no caller in its queue is lost between the two (T07, T13).
pub struct Server<S> {
    service: Arc<S>,
    calls: Arc<dyn Calls>,
    version: String,
    handle: Handle,
}

/// Tells what is in flight, over all sessions. Clones are of the same server.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) tasks: TaskTracker,
    /// Connections on which nothing was called yet.
    fresh: TaskTracker,
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
            tasks: TaskTracker::new(),
            fresh: TaskTracker::new(),
            adds: Arc::new(Semaphore::new(ADDS_MAX)),
            others: Arc::new(Semaphore::new(CALLS_MAX)),
        };
        // Closed only means that whoever waits hears when none is left.
        shared.tasks.close();
        shared.fresh.close();
        Self { service, calls, version: version.into(), handle: Handle { shared: Arc::new(shared) } }
    }

    /// A handle of this server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Serves on `listener` until `until`, and then accepts nothing more: what was accepted is finished, and who comes after
    /// that waits in the listener's queue. Returns when nothing is in flight and the answers are out.
    pub fn serve(
        &self,
        listener: Arc<UnixListener>,
        until: CancellationToken,
    ) -> impl Future<Output = Result<(), ServeError>> + Send + 'static {
        let handle = self.handle.clone();
        let lost: Arc<std::sync::Mutex<Option<io::Error>>> = Arc::default();
        let fresh = handle.shared.fresh.clone();
        let incoming = accept(listener, Arc::clone(&self.calls), Arc::clone(&lost), until.clone(), fresh);
        let (service, calls) = (Arc::clone(&self.service), Arc::clone(&self.calls));
        let service = CniServer::new(Handler::new(service, calls, self.version.clone(), handle.clone()))
            .max_decoding_message_size(CALL_BYTES_MAX);
        async move {
            let server = tonic::transport::Server::builder()
                .max_concurrent_streams(STREAMS_MAX)
                .add_service(service)
                .serve_with_incoming_shutdown(incoming, handle.clone().quiet(until.clone()));
            let lingering = async {
                handle.clone().quiet(until).await;
                tokio::time::sleep(DRAIN_LINGER).await;
            };
            tokio::select! {
                ended = server => ended.map_err(ServeError::Server)?,
                // A connection that never ends its request would keep us for ever; its caller is reset and tries again.
                () = lingering => tracing::debug!("connections that did not end in time are closed"),
            }
            // Its handlers are gone with it, their work may not be: a lost listener ends the server in the middle of calls.
            handle.idle().await;
            let lost = lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            lost.map_or(Ok(()), |error| Err(ServeError::Accept(error)))
        }
    }
}

impl Handle {
    /// Waits until nothing is in flight, also of calls whose caller has left.
    pub async fn idle(&self) {
        self.shared.tasks.wait().await;
    }

    /// Waits for `until`, and then until every caller that was let in has made its call and has its answer. To end its
    /// connection before would send it away unheard.
    async fn quiet(self, until: CancellationToken) {
        until.cancelled().await;
        // One that stays silent is not waited for long.
        let _ = tokio::time::timeout(CALLER_WAIT, self.shared.fresh.wait()).await;
        self.idle().await;
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
    listener: Arc<UnixListener>,
    calls: Arc<dyn Calls>,
    lost: Arc<std::sync::Mutex<Option<io::Error>>>,
    until: CancellationToken,
    fresh: TaskTracker,
) -> impl futures_core::Stream<Item = Result<Connection, std::convert::Infallible>> {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let failing = AtomicBool::new(false);
    async_stream::stream! {
        loop {
            let next = async {
                // The semaphore is never closed.
                let place = Arc::clone(&places).acquire_owned().await.ok()?;
                // Before the caller is let in: whoever looks in that very moment whether somebody is must not find nobody.
                let caller = fresh.token();
                Some((place, caller, listener.accept().await))
            };
            // Whoever is not taken before the end stays in the queue, for the next session (T07). The stream does not end:
            // that would end the connections that were let in, at once.
            // The end is looked at first: callers that come one behind the other would be let in for ever.
            let next = tokio::select! {
                biased;
                () = until.cancelled() => None,
                next = next => next,
            };
            let Some((place, caller, accepted)) = next else {
                return std::future::pending().await;
            };
            match accepted {
                Ok((stream, _)) => {
                    failing.store(false, Ordering::Relaxed);
                    match Connection::admit(stream, place, caller) {
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
