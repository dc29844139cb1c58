//! A pod as the tests ask for it.

use std::collections::HashMap;

use super::messages;

/// A sandbox's id, which is `CNI_CONTAINERID`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxId(pub String);

impl SandboxId {
    pub(super) fn message(&self) -> messages::PodSandboxId {
        messages::PodSandboxId { pod_sandbox_id: self.0.clone() }
    }
}

impl std::fmt::Display for SandboxId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The protocol of a host port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A port of the node that leads to the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostPort {
    /// The port on the node.
    pub host: u16,
    /// The port in the pod.
    pub container: u16,
    /// The protocol.
    pub protocol: Protocol,
}

/// Which network a pod is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Network {
    /// Its own.
    #[default]
    Pod,
    /// The node's: no CNI call is made.
    Host,
}

/// A pod to be started. Its uid is `uid-<name>` unless another is given.
#[derive(Debug, Clone, Default)]
pub struct Pod {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid.
    pub uid: String,
    /// Which attempt at this pod: the runtime refuses the same name, uid and attempt twice.
    pub attempt: u32,
    /// The annotations.
    pub annotations: HashMap<String, String>,
    /// The host ports.
    pub ports: Vec<HostPort>,
    /// The network.
    pub network: Network,
}

impl Pod {
    /// A plain pod.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into(), uid: format!("uid-{name}"), ..Self::default() }
    }

    pub(super) fn config(&self, cgroup_parent: &str) -> messages::PodSandboxConfig {
        // NamespaceMode: 0 is the pod's own, 1 the container's own, 2 the node's.
        let (network, hostname) = match self.network {
            Network::Pod => (0, self.name.clone()),
            Network::Host => (2, String::new()),
        };
        let port = |port: &HostPort| messages::PortMapping {
            protocol: match port.protocol {
                Protocol::Tcp => 0,
                Protocol::Udp => 1,
            },
            container_port: port.container.into(),
            host_port: port.host.into(),
            host_ip: String::new(),
        };
        messages::PodSandboxConfig {
            metadata: Some(messages::PodSandboxMetadata {
                name: self.name.clone(),
                uid: self.uid.clone(),
                namespace: self.namespace.clone(),
                attempt: self.attempt,
            }),
            hostname,
            port_mappings: self.ports.iter().map(port).collect(),
            annotations: self.annotations.clone(),
            linux: Some(messages::LinuxPodSandboxConfig {
                cgroup_parent: cgroup_parent.to_owned(),
                security_context: Some(messages::LinuxSandboxSecurityContext {
                    namespace_options: Some(messages::NamespaceOption { network, pid: 1, ipc: 0 }),
                }),
            }),
        }
    }
}
