//! The probes' socket, pod-local: `GET /readyz` and `GET /livez` (B01, B02). Owner and standby have it alike, and each
//! answers for itself alone.

use std::sync::Arc;

use aether_domain::limits::LIVENESS;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::modules::Readiness;
use crate::node::Node;
use crate::takeover::{Pings, turns};

/// Answers on the listener until `stop`.
pub(crate) async fn serve(
    listener: UnixListener,
    node: Arc<Node>,
    pings: Pings,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let ready = move || {
        let node = Arc::clone(&node);
        async move { readyz(&missing(&node)) }
    };
    let live = move || {
        let pings = pings.clone();
        async move { if turns(&pings).await { (StatusCode::OK, "live\n".to_owned()) } else { stuck() } }
    };
    let router = Router::new().route("/readyz", get(ready)).route("/livez", get(live));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await?;
    Ok(())
}

/// What keeps the agent from being ready: gates (T04), and what the chain says (C08).
pub(crate) fn missing(node: &Node) -> Vec<String> {
    let gates = node.standing().missing().into_iter().map(str::to_owned);
    let chain = match node.modules.ends.readiness() {
        Readiness::Ready => None,
        Readiness::NotReady(why) => Some(why),
    };
    gates.chain(chain).collect()
}

fn readyz(missing: &[String]) -> (StatusCode, String) {
    if missing.is_empty() {
        (StatusCode::OK, "ready\n".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", missing.join(", ")))
    }
}

fn stuck() -> (StatusCode, String) {
    let text = format!("not live: the agent's loop has not turned for {} s\n", LIVENESS.as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b01_what_is_missing_is_named_on_one_line() {
        assert_eq!(readyz(&[]), (StatusCode::OK, "ready\n".to_owned()));
        let (code, text) = readyz(&["records".to_owned(), "modules".to_owned()]);
        assert_eq!((code.as_u16(), text.as_str()), (503, "not ready: records, modules\n"));
    }
}
