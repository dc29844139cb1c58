//! `GET /metrics`: a router for both places, and the address that the owner alone answers on (O01).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use aether_telemetry::metrics::CONTENT_TYPE;
use axum::Router;
use axum::http::header;
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// How many scrapes may be open. The address can be reached from pods: what they open must not use up the agent's
/// descriptors (O04).
const CONNECTIONS_MAX: usize = 32;
/// How long one may stay open.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// How long until a taken address is tried again: an agent that ends leaves it.
const BIND_AGAIN: Duration = Duration::from_secs(5);

/// The route.
pub(crate) fn router(node: Arc<Node>) -> Router {
    let answer = move || {
        let node = Arc::clone(&node);
        async move {
            let text = tokio::task::spawn_blocking(move || node.exposition()).await;
            // A scrape that broke off says nothing, and the next one is another.
            ([(header::CONTENT_TYPE, CONTENT_TYPE)], text.unwrap_or_default())
        }
    };
    Router::new().route("/metrics", get(answer))
}

/// Answers on `address` until `stop`; while it is taken, says so once and tries on.
pub(crate) async fn serve(
    address: SocketAddr,
    node: Arc<Node>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let Some(listener) = stop.run_until_cancelled(bind(address)).await else { return Ok(()) };
    node.metrics.address_served();
    tracing::info!(address = %listener.local_addr().unwrap_or(address), "metrics are answered");
    let router = router(Arc::clone(&node));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => { connections.spawn(answer(stream, router.clone())); }
                Err(error) => {
                    tracing::warn!(%address, "cannot accept on the metrics address: {error}");
                    tokio::time::sleep(BIND_AGAIN).await;
                }
            },
        }
    }
    node.metrics.address_left();
    Ok(())
}

async fn bind(address: SocketAddr) -> TcpListener {
    let mut told = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => {
                if !told {
                    told = true;
                    tracing::warn!(
                        %address,
                        "cannot bind the metrics address: {error}; metrics are still answered on the admin socket. Stop what uses \
                         it, or choose another with --metrics-addr; it is tried again every {} s",
                        BIND_AGAIN.as_secs()
                    );
                }
                tokio::time::sleep(BIND_AGAIN).await;
            }
        }
    }
}

async fn answer(stream: TcpStream, router: Router) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(CONNECTION_MAX).keep_alive(false);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // However it ends, it ends: a scraper that is cut off asks again.
    let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
}
