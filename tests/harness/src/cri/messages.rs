//! The messages of CRI v1 that are needed, with the tags of cri-api's api.proto; unknown fields are skipped.

use std::collections::HashMap;

macro_rules! messages {
    ($($(#[$doc:meta])* $vis:vis $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* })*) => {
        $($(#[$doc])* #[derive(Clone, PartialEq, ::prost::Message)] $vis struct $name { $($(#[$meta])* pub $field: $type,)* })*
    };
}

messages! {
    /// A pod's name as the runtime knows it.
    pub PodSandboxMetadata {
        /// Its name.
        #[prost(string, tag = "1")] name: String,
        /// Its uid.
        #[prost(string, tag = "2")] uid: String,
        /// Its namespace.
        #[prost(string, tag = "3")] namespace: String,
        /// Which attempt at it.
        #[prost(uint32, tag = "4")] attempt: u32,
    }
    pub(super) PortMapping {
        #[prost(int32, tag = "1")] protocol: i32,
        #[prost(int32, tag = "2")] container_port: i32,
        #[prost(int32, tag = "3")] host_port: i32,
        #[prost(string, tag = "4")] host_ip: String,
    }
    pub(super) NamespaceOption {
        #[prost(int32, tag = "1")] network: i32,
        #[prost(int32, tag = "2")] pid: i32,
        #[prost(int32, tag = "3")] ipc: i32,
    }
    pub(super) LinuxSandboxSecurityContext {
        #[prost(message, optional, tag = "1")] namespace_options: Option<NamespaceOption>,
    }
    pub(super) LinuxPodSandboxConfig {
        #[prost(string, tag = "1")] cgroup_parent: String,
        #[prost(message, optional, tag = "2")] security_context: Option<LinuxSandboxSecurityContext>,
    }
    pub(super) PodSandboxConfig {
        #[prost(message, optional, tag = "1")] metadata: Option<PodSandboxMetadata>,
        #[prost(string, tag = "2")] hostname: String,
        #[prost(message, repeated, tag = "5")] port_mappings: Vec<PortMapping>,
        #[prost(map = "string, string", tag = "7")] annotations: HashMap<String, String>,
        #[prost(message, optional, tag = "8")] linux: Option<LinuxPodSandboxConfig>,
    }
    pub(super) RunPodSandboxRequest {
        #[prost(message, optional, tag = "1")] config: Option<PodSandboxConfig>,
        #[prost(string, tag = "2")] runtime_handler: String,
    }
    pub(super) PodSandboxId {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
    }
    pub(super) Empty {}
    pub(super) StatusRequest {
        #[prost(bool, tag = "1")] verbose: bool,
    }
    /// One of the runtime's conditions.
    pub RuntimeCondition {
        /// `RuntimeReady`, `NetworkReady`, ...
        #[prost(string, tag = "1")] r#type: String,
        /// Whether it holds.
        #[prost(bool, tag = "2")] status: bool,
        /// Why not, in a word.
        #[prost(string, tag = "3")] reason: String,
        /// Why not, in full.
        #[prost(string, tag = "4")] message: String,
    }
    pub(super) RuntimeConditions {
        #[prost(message, repeated, tag = "1")] conditions: Vec<RuntimeCondition>,
    }
    pub(super) StatusResponse {
        #[prost(message, optional, tag = "1")] status: Option<RuntimeConditions>,
        #[prost(map = "string, string", tag = "2")] info: HashMap<String, String>,
    }
    pub(super) PodSandboxStatusRequest {
        #[prost(string, tag = "1")] pod_sandbox_id: String,
        #[prost(bool, tag = "2")] verbose: bool,
    }
    /// A sandbox's network.
    pub PodSandboxNetworkStatus {
        /// Its address.
        #[prost(string, tag = "1")] ip: String,
    }
    /// What the runtime says of one sandbox.
    pub PodSandboxStatus {
        /// Its id.
        #[prost(string, tag = "1")] id: String,
        /// Its name.
        #[prost(message, optional, tag = "2")] metadata: Option<PodSandboxMetadata>,
        /// 0 is ready, 1 is not.
        #[prost(int32, tag = "3")] state: i32,
        /// Its network.
        #[prost(message, optional, tag = "5")] network: Option<PodSandboxNetworkStatus>,
    }
    pub(super) PodSandboxStatusResponse {
        #[prost(message, optional, tag = "1")] status: Option<PodSandboxStatus>,
    }
    /// One sandbox in a list.
    pub PodSandbox {
        /// Its id.
        #[prost(string, tag = "1")] id: String,
        /// Its name.
        #[prost(message, optional, tag = "2")] metadata: Option<PodSandboxMetadata>,
        /// 0 is ready, 1 is not.
        #[prost(int32, tag = "3")] state: i32,
    }
    pub(super) ListPodSandboxResponse {
        #[prost(message, repeated, tag = "1")] items: Vec<PodSandbox>,
    }
}

impl PodSandbox {
    /// Whether it runs.
    pub fn is_ready(&self) -> bool {
        self.state == 0
    }
}

impl PodSandboxStatus {
    /// Whether it runs.
    pub fn is_ready(&self) -> bool {
        self.state == 0
    }

    /// Its address; empty when it has none.
    pub fn address(&self) -> &str {
        self.network.as_ref().map_or("", |network| &network.ip)
    }
}
