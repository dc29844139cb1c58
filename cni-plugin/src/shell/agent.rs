//! Asking the agent: one connection for each attempt, on the calling thread.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use aether_api::cni::cni_client::CniClient;
use aether_domain::limits;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tonic::{Response, Status};

use crate::shell::transport::{Transport, TransportError};
use crate::verdict::{Again, Trouble};

/// A client of one connection.
pub(super) type Client = CniClient<Transport>;

/// Asks the agent on `socket` until it answers, `again` says that it is of no use, or `left` is over; what is returned
/// then is the last trouble met.
pub(super) async fn ask<T>(
    socket: &Path,
    left: Duration,
    again: impl Fn(&Trouble) -> Again,
    call: impl AsyncFn(Client) -> Result<Response<T>, Status>,
) -> Result<T, Trouble> {
    let deadline = Instant::now() + left;
    let mut last = None;
    loop {
        let attempt = tokio::time::timeout_at(deadline, attempt(socket, &call)).await;
        let trouble = match attempt {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(trouble)) => trouble,
            // What was met before says more than that there was no time for once more.
            Err(_) => return Err(last.unwrap_or(Trouble::TimedOut)),
        };
        if again(&trouble) == Again::No || Instant::now() + limits::ADD_RETRY >= deadline {
            return Err(trouble);
        }
        last = Some(trouble);
        tokio::time::sleep(limits::ADD_RETRY).await;
    }
}

async fn attempt<T>(
    socket: &Path,
    call: &impl AsyncFn(Client) -> Result<Response<T>, Status>,
) -> Result<T, Trouble> {
    let stream = connect(socket).await?;
    let (send, connection) =
        h2::client::handshake(stream).await.map_err(|error| Trouble::Lost(error.to_string()))?;
    // The authority of a unix socket has no meaning, and HTTP/2 wants one.
    let client = CniClient::with_origin(Transport::new(send), http::Uri::from_static("http://localhost"));
    match driven(pin!(call(client)), pin!(connection)).await {
        Some(Ok(answer)) => Ok(answer.into_inner()),
        Some(Err(status)) => Err(explain(&status)),
        None => Err(Trouble::Lost("it was closed".to_owned())),
    }
}

/// Polls the connection beside the call, on this task. `None`: the connection ended and the call cannot.
async fn driven<O>(
    mut call: Pin<&mut impl Future<Output = O>>,
    mut connection: Pin<&mut impl Future<Output = Result<(), h2::Error>>>,
) -> Option<O> {
    poll_fn(|cx| {
        if let Poll::Ready(answer) = call.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        if connection.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        // Its end was told to the call's stream.
        match call.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await
}

async fn connect(socket: &Path) -> Result<UnixStream, Trouble> {
    let stream = loop {
        match UnixStream::connect(socket).await {
            Ok(stream) => break stream,
            // Somebody listens and his queue is full.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                tokio::time::sleep(limits::ADD_RETRY).await;
            }
            Err(error) => return Err(Trouble::Away(error.to_string())),
        }
    };
    let peer = stream.peer_cred().map_err(|error| Trouble::Lost(error.to_string()))?.uid();
    // Whoever else could bind here would be told of every pod, and could admit it (O04).
    if peer != 0 && peer != rustix::process::geteuid().as_raw() {
        return Err(Trouble::Foreign(peer));
    }
    Ok(stream)
}

/// Tells an answer of the agent from the end of its connection.
fn explain(status: &Status) -> Trouble {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        match error.downcast_ref::<TransportError>() {
            Some(TransportError::Http2(error)) => return Trouble::Lost(error.to_string()),
            Some(other) => return Trouble::Lost(other.to_string()),
            None => source = error.source(),
        }
    }
    Trouble::Refused { code: status.code(), message: status.message().to_owned() }
}
