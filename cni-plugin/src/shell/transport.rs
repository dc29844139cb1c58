//! One HTTP/2 connection as the generated client wants it. Tonic's own channel brings reconnection, balancing and a
//! buffer task, for which a process that makes one call has no use and the binary no room (P7).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use h2::RecvStream;
use h2::client::SendRequest;
use http_body::{Body, Frame};
use tower_service::Service;

/// Why there is no answer on a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    /// The connection or the stream ended with an error.
    #[error("HTTP/2")]
    Http2(#[from] h2::Error),
    /// The request could not be encoded.
    #[error("the request could not be encoded")]
    Request(#[source] tonic::Status),
    /// The stream ended without a gRPC status.
    #[error("the stream ended without a status")]
    NoStatus,
}

/// The sending half of a connection, for one call.
#[derive(Debug)]
pub(super) struct Transport {
    send: SendRequest<Bytes>,
}

impl Transport {
    /// Calls on the connection of `send`, which somebody drives.
    pub(super) fn new(send: SendRequest<Bytes>) -> Self {
        Self { send }
    }
}

impl Service<http::Request<tonic::body::Body>> for Transport {
    type Response = http::Response<Answer>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.send.poll_ready(cx).map_err(TransportError::Http2)
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let mut send = self.send.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = whole(body).await?;
            let (response, mut stream) = send.send_request(http::Request::from_parts(parts, ()), false)?;
            // h2 holds what the peer's window does not take yet; it is one message, already in memory.
            stream.send_data(body, true)?;
            let (parts, body) = response.await?.into_parts();
            let owed = !parts.headers.contains_key(tonic::Status::GRPC_STATUS);
            Ok(http::Response::from_parts(parts, Answer { body, owed }))
        })
    }
}

/// The request's only message.
async fn whole(mut body: tonic::body::Body) -> Result<Bytes, TransportError> {
    let mut message = Bytes::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(TransportError::Request)?;
        if let Ok(data) = frame.into_data()
            && data.has_remaining()
        {
            message = if message.is_empty() { data } else { [message, data].concat().into() };
        }
    }
    Ok(message)
}

/// The body of an answer. It ends with an error when no status came, so that a connection that was cut between the
/// frames of an answer is told from an answer (K04).
#[derive(Debug)]
pub(super) struct Answer {
    body: RecvStream,
    owed: bool,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = TransportError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TransportError>>> {
        if !self.body.is_end_stream() {
            match self.body.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(data))) => {
                    let _ = self.body.flow_control().release_capacity(data.len());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => {}
            }
        }
        match self.body.poll_trailers(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(Some(trailers))) => {
                self.owed &= !trailers.contains_key(tonic::Status::GRPC_STATUS);
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Poll::Ready(Ok(None)) if std::mem::take(&mut self.owed) => {
                Poll::Ready(Some(Err(TransportError::NoStatus)))
            }
            Poll::Ready(Ok(None)) => Poll::Ready(None),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error.into()))),
        }
    }
}
