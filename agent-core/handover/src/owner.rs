//! The owner's side: standbys call, say who they are, and are spoken to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aether_domain::limits::{ACCEPT_PAUSE, STANDBYS_MAX};
use aether_domain::takeover::message::ToOwner;
use aether_domain::takeover::{Event, Peer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, HearError, Reader};

/// How long a caller may take to say who it is.
const HELLO_WAIT: Duration = Duration::from_secs(1);
/// How many callers there may be at once: those that are greeted, and as many that are about to be turned away.
const CALLERS_MAX: usize = 2 * STANDBYS_MAX;

/// Numbers standbys' connections, over all listeners of one agent.
#[derive(Debug, Default)]
pub struct Standbys {
    last: AtomicU64,
}

/// Accepts callers on `listener` until `stop`, and tells of what they say: the connection of each goes to `connected` before
/// anything that it says goes to `events`. Connections outlive a `stop`, until their other side or [`Connection::close`] ends
/// them; they end with `life`.
pub async fn accept(
    listener: Arc<UnixListener>,
    standbys: Arc<Standbys>,
    connected: mpsc::Sender<(Peer, Connection)>,
    events: mpsc::Sender<Event>,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(CALLERS_MAX));
    let mut followed = JoinSet::new();
    loop {
        let next = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((place, listener.accept().await))
        };
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = followed.join_next() => {}
            Some((place, accepted)) = next => match accepted {
                Ok((stream, _)) => {
                    if let Some((connection, reader)) = admit(stream) {
                        let peer = Peer(standbys.last.fetch_add(1, Ordering::Relaxed) + 1);
                        if connected.send((peer, connection)).await.is_err() {
                            return;
                        }
                        followed.spawn(follow(peer, reader, events.clone(), place));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept on the hand-over socket; trying on");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    while followed.join_next().await.is_some() {}
}

/// Lets in root, and whoever this process runs as (O04).
fn admit(stream: UnixStream) -> Option<(Connection, Reader)> {
    match stream.peer_cred().map(|peer| peer.uid()) {
        Ok(uid) if aether_durable::socket::may_call(uid) => Some(Connection::over(stream)),
        Ok(uid) => {
            tracing::warn!(uid, "turned away a caller on the hand-over socket: only root may call");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "turned away a caller on the hand-over socket: cannot tell who it is");
            None
        }
    }
}

async fn follow(peer: Peer, mut reader: Reader, events: mpsc::Sender<Event>, _place: OwnedSemaphorePermit) {
    let mut first = true;
    let why = loop {
        let heard = if std::mem::take(&mut first) {
            timeout(HELLO_WAIT, reader.next::<ToOwner>()).await.unwrap_or(Err(HearError::Silent(HELLO_WAIT)))
        } else {
            reader.next::<ToOwner>().await
        };
        match heard {
            Ok(message) => {
                if events.send(Event::FromStandby { peer, message }).await.is_err() {
                    return;
                }
            }
            Err(why) => break why,
        }
    };
    if !matches!(why, HearError::Ended) {
        tracing::warn!(error = %why, "a standby is heard no more");
    }
    // The receiver is gone only when the agent ends.
    let _ = events.send(Event::StandbyGone { peer }).await;
}
