//! gRPC over a unix socket.

use std::path::Path;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};

/// A channel to whoever listens on `socket`; it connects with the first call, and again after its connection broke.
pub(crate) fn channel(socket: &Path) -> Channel {
    let socket = socket.to_path_buf();
    let connect = tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect)
}

/// A channel over a connection that stands already; when that breaks, the channel is of no more use.
pub(crate) async fn channel_over(stream: UnixStream) -> Result<Channel, tonic::transport::Error> {
    let mut only = Some(stream);
    let connect = tower::service_fn(move |_: Uri| {
        let stream = only.take().ok_or_else(|| std::io::Error::other("the only connection broke"));
        async move { stream.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector(connect).await
}
