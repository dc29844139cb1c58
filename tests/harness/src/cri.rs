//! A small client of CRI v1: what the tests need of the runtime service, without protoc.

mod messages;
mod pod;

use std::path::Path;
use std::time::Duration;

use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::socket;

pub use messages::{PodSandbox, PodSandboxStatus, RuntimeCondition};
pub use pod::{HostPort, Network, Pod, Protocol, SandboxId};

/// Within which a call is answered where nothing else is asked: longer than any of the runtime's own limits.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// A client of the runtime service. Clones share one connection, which comes back by itself when the runtime restarts.
#[derive(Debug, Clone)]
pub struct Cri {
    channel: Channel,
    cgroup_parent: String,
    deadline: Duration,
}

/// What the runtime says of itself.
#[derive(Debug, Clone)]
pub struct RuntimeStatus {
    /// The conditions, `NetworkReady` among them.
    pub conditions: Vec<RuntimeCondition>,
    /// What the last load of the CNI configuration came to: "OK" or the error.
    pub last_cni_load: String,
    /// The loaded networks, as JSON.
    pub cni_config: String,
}

impl RuntimeStatus {
    /// The condition `NetworkReady`.
    pub fn network(&self) -> Option<&RuntimeCondition> {
        self.conditions.iter().find(|condition| condition.r#type == "NetworkReady")
    }

    /// Whether the network counts as ready.
    pub fn network_ready(&self) -> bool {
        self.network().is_some_and(|condition| condition.status)
    }

    /// The plugin types of the loaded list, in order.
    pub fn plugins(&self) -> Vec<String> {
        let config: serde_json::Value = serde_json::from_str(&self.cni_config).unwrap_or_default();
        let networks =
            config.get("Networks").and_then(|networks| networks.as_array()).cloned().unwrap_or_default();
        let of_pods = networks.iter().find(|network| network.get("IFName").is_some_and(|name| name != "lo"));
        let plugins = of_pods.and_then(|network| network.pointer("/Config/Plugins")?.as_array().cloned());
        let type_of = |plugin: &serde_json::Value| {
            plugin.pointer("/Network/type").and_then(|of| of.as_str()).unwrap_or_default().to_owned()
        };
        plugins.unwrap_or_default().iter().map(type_of).collect()
    }
}

impl Cri {
    /// A client of the runtime behind `socket`; it connects with the first call. Its pods' cgroups are made below
    /// `cgroup_parent`.
    pub fn new(socket: &Path, cgroup_parent: String) -> Self {
        let channel = socket::channel(socket);
        Self { channel, cgroup_parent, deadline: DEADLINE }
    }

    /// The same client with another deadline, which the runtime is told too. Dropping a call's future cancels it.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        Self { deadline, ..self.clone() }
    }

    /// Starts a sandbox.
    pub async fn run(&self, pod: &Pod) -> Result<SandboxId, Status> {
        let request = messages::RunPodSandboxRequest {
            config: Some(pod.config(&self.cgroup_parent)),
            ..Default::default()
        };
        let answer: messages::PodSandboxId = self.call("RunPodSandbox", request).await?;
        Ok(SandboxId(answer.pod_sandbox_id))
    }

    /// Stops a sandbox.
    pub async fn stop(&self, id: &SandboxId) -> Result<(), Status> {
        self.call::<_, messages::Empty>("StopPodSandbox", id.message()).await.map(|_| ())
    }

    /// Removes a sandbox.
    pub async fn remove(&self, id: &SandboxId) -> Result<(), Status> {
        self.call::<_, messages::Empty>("RemovePodSandbox", id.message()).await.map(|_| ())
    }

    /// Stops and removes a sandbox.
    pub async fn stop_and_remove(&self, id: &SandboxId) -> Result<(), Status> {
        self.stop(id).await?;
        self.remove(id).await
    }

    /// One sandbox.
    pub async fn status(&self, id: &SandboxId) -> Result<PodSandboxStatus, Status> {
        let request = messages::PodSandboxStatusRequest { pod_sandbox_id: id.0.clone(), verbose: false };
        let answer: messages::PodSandboxStatusResponse = self.call("PodSandboxStatus", request).await?;
        answer.status.ok_or_else(|| Status::internal("the runtime answered without a status"))
    }

    /// All sandboxes.
    pub async fn list(&self) -> Result<Vec<PodSandbox>, Status> {
        let answer: messages::ListPodSandboxResponse =
            self.call("ListPodSandbox", messages::Empty {}).await?;
        Ok(answer.items)
    }

    /// The runtime's status with its CNI configuration.
    pub async fn runtime_status(&self) -> Result<RuntimeStatus, Status> {
        let mut answer: messages::StatusResponse =
            self.call("Status", messages::StatusRequest { verbose: true }).await?;
        Ok(RuntimeStatus {
            conditions: answer.status.unwrap_or_default().conditions,
            last_cni_load: answer.info.remove("lastCNILoadStatus").unwrap_or_default(),
            cni_config: answer.info.remove("cniconfig").unwrap_or_default(),
        })
    }

    async fn call<Q, R>(&self, method: &str, message: Q) -> Result<R, Status>
    where
        Q: prost::Message + 'static,
        R: prost::Message + Default + 'static,
    {
        let path = PathAndQuery::try_from(format!("/runtime.v1.RuntimeService/{method}"))
            .map_err(|error| Status::internal(error.to_string()))?;
        let mut request = Request::new(message);
        request.set_timeout(self.deadline);
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(16 << 20);
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(grpc.unary(request, path, ProstCodec::<Q, R>::default()).await?.into_inner())
    }
}
