//! The pod-local admin socket: `aether.admin.v1` for `aetherctl`, and `GET /metrics`. Owner and standby have it alike.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use aether_api::admin::admin_server::{Admin, AdminServer};
use aether_api::admin::{
    ChainRequest, ChainResponse, ConditionsRequest, ConditionsResponse, EventsRequest, EventsResponse,
    LogLevelRequest, LogLevelResponse, ModulesRequest, ModulesResponse, PodsRequest, PodsResponse,
    TakeoverRequest, TakeoverResponse, Unusable,
};
use aether_domain::chain::State;
use aether_domain::text::error_chain;
use aether_durable::socket::may_call;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use crate::modules::told;
use crate::node::{Node, Role};
use crate::{health, metrics_http, takeover};

/// Answers on the listener until `stop`.
pub(crate) async fn serve(
    listener: UnixListener,
    node: Arc<Node>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let service = Service { node: Arc::clone(&node) };
    let grpc = tonic::service::Routes::new(AdminServer::new(service)).into_axum_router();
    let router = grpc.merge(metrics_http::router(node));
    axum::serve(Guarded(listener), router).with_graceful_shutdown(stop.cancelled_owned()).await?;
    Ok(())
}

struct Service {
    node: Arc<Node>,
}

#[tonic::async_trait]
impl Admin for Service {
    async fn pods(&self, _: Request<PodsRequest>) -> Result<Response<PodsResponse>, Status> {
        let role = self.node.role();
        if role == Role::Standby {
            // A standby keeps no record up to date; it reads them when it is asked, and writes nothing.
            self.node.store.reload().await.map_err(|error| Status::internal(error_chain(&error)))?;
        }
        let mut records = Vec::new();
        for record in self.node.store.records() {
            records
                .push(serde_json::to_string(&record).map_err(|error| Status::internal(error.to_string()))?);
        }
        let unusable = self.node.store.unusable().into_iter();
        let unusable = unusable.map(|found| Unusable { file: found.file, reason: found.reason }).collect();
        Ok(Response::new(PodsResponse { records, role: role.name().to_owned(), unusable }))
    }

    async fn chain(&self, _: Request<ChainRequest>) -> Result<Response<ChainResponse>, Status> {
        let seen = self.node.chain.borrow().clone();
        Ok(Response::new(ChainResponse {
            state: seen.state.name().to_owned(),
            detail: detail(&seen.state),
            file: seen.file.unwrap_or_default(),
            choice: seen.choice,
            plugins: seen.plugins,
            install_id: seen.install_id.map(String::from).unwrap_or_default(),
            watch_mode: seen.mode.name().to_owned(),
            checked_at: seen.checked_at,
            role: self.node.role().name().to_owned(),
        }))
    }

    async fn log_level(
        &self,
        request: Request<LogLevelRequest>,
    ) -> Result<Response<LogLevelResponse>, Status> {
        let LogLevelRequest { directives } = request.into_inner();
        let level = &self.node.level;
        if !directives.is_empty() {
            level.change(&directives).map_err(|error| Status::invalid_argument(error_chain(&error)))?;
            tracing::info!(directives, "the log level was changed by the admin socket");
        }
        Ok(Response::new(LogLevelResponse { directives: level.current() }))
    }

    async fn modules(&self, _: Request<ModulesRequest>) -> Result<Response<ModulesResponse>, Status> {
        let node = Arc::clone(&self.node);
        // A module that is in the middle of a call is waited for.
        let told = tokio::task::spawn_blocking(move || told::modules(&node.modules)).await;
        let answer = told.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(ModulesResponse { role: self.node.role().name().to_owned(), ..answer }))
    }

    async fn events(&self, _: Request<EventsRequest>) -> Result<Response<EventsResponse>, Status> {
        Ok(Response::new(told::events(&self.node.modules)))
    }

    async fn conditions(
        &self,
        _: Request<ConditionsRequest>,
    ) -> Result<Response<ConditionsResponse>, Status> {
        let node = Arc::clone(&self.node);
        let told =
            tokio::task::spawn_blocking(move || told::conditions(&node.modules, &health::missing(&node)))
                .await;
        Ok(Response::new(told.map_err(|error| Status::internal(error.to_string()))?))
    }

    async fn takeover(&self, _: Request<TakeoverRequest>) -> Result<Response<TakeoverResponse>, Status> {
        let told = takeover::told(&self.node.standing());
        Ok(Response::new(TakeoverResponse { missing: health::missing(&self.node), ..told }))
    }
}

/// What is wrong, and what to do about it.
fn detail(state: &State) -> String {
    const REPAIR: &str = "run aether-cni-install on the node to put our entry back";
    match state {
        State::Chained => String::new(),
        State::Stripped => format!("the list holds no entry of ours: pods start unmanaged; {REPAIR}"),
        State::Drifted { how } => format!("{how}; {REPAIR}"),
        State::NoList => {
            "no file that a container runtime would load: the node's primary CNI has not written its list yet"
                .to_owned()
        }
        State::Invalid { why } => format!("{why}; its owner has to correct it, it is never repaired by us"),
        State::Uninstalled => {
            "Aether was uninstalled from this node; run aether-cni-install to install it again".to_owned()
        }
        State::Unknown { why } => why.clone(),
    }
}

/// The pause after a failed accept: out of descriptors, mostly, which passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Lets in root, and whoever this process runs as (O04).
struct Guarded(UnixListener);

impl axum::serve::Listener for Guarded {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok((stream, address)) => match stream.peer_cred() {
                    Ok(peer) if may_call(peer.uid()) => return (stream, address),
                    Ok(peer) => tracing::warn!(
                        uid = peer.uid(),
                        pid = peer.pid(),
                        "turned away a caller on the admin socket"
                    ),
                    Err(error) => tracing::warn!(
                        "turned away a caller on the admin socket: cannot tell who it is: {error}"
                    ),
                },
                Err(error) => {
                    tracing::warn!("cannot accept on the admin socket: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c01_every_state_but_chained_says_what_is_wrong() {
        let why = || "why".to_owned();
        for state in [
            State::Stripped,
            State::Drifted { how: why() },
            State::NoList,
            State::Invalid { why: why() },
            State::Uninstalled,
            State::Unknown { why: why() },
        ] {
            assert!(!detail(&state).is_empty(), "{state:?}");
        }
        assert_eq!(detail(&State::Chained), "");
    }
}
