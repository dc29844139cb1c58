//! gRPC over a unix socket.

use std::path::Path;

use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint, Uri};

/// A channel to whoever listens on `socket`; it connects with the first call, and again after its connection broke.
pub(crate) fn channel(socket: &Path) -> Channel {
    let socket = socket.to_path_buf();
    let connect = tower::service_fn(move |_: Uri| {
        let socket = socket.clone();
        async move { tokio::net::UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect)
}
