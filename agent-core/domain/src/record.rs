//! What is kept of one attachment, durably (S01).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::clock::{BootId, Stamp};
use crate::format::Format;
use crate::ids::{NetworkName, RequestId};
use crate::key::Key;
use crate::managed::Managed;

/// The version of the record format that this code reads and writes.
pub const READER: u32 = 1;

/// One attachment's record. Keys and their meaning: `agent-core/docs/formats.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The format's numbers.
    #[serde(flatten)]
    pub format: Format,
    /// Container id and interface.
    #[serde(flatten)]
    pub key: Key,
    /// The list's name.
    pub network: NetworkName,
    /// When the plugin of the ADD began.
    pub started: Stamp,
    /// The request that wrote it.
    pub request_id: RequestId,
    /// Whether the pod is ours.
    pub managed: Managed,
    /// The pod's network namespace.
    pub netns: Netns,
    /// The pod.
    pub pod: Pod,
    /// What policies put on the record (M07): labels of ours, not the pod's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy_labels: BTreeMap<String, String>,
}

/// A network namespace: where it was mounted, and which one it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Netns {
    /// `CNI_NETNS` as given.
    pub path: String,
    /// The namespace's inode number; 0 when it could not be seen.
    pub inode: u64,
}

/// What CNI tells of a pod (I09). Labels and the service account are not among it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// The Kubernetes namespace; empty where the caller is no kubelet.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The pod's annotations.
    pub annotations: BTreeMap<String, String>,
    /// Host ports.
    pub host_ports: Vec<HostPort>,
    /// Addresses of the interface with their prefix lengths (`10.244.1.2/24`).
    pub addresses: Vec<String>,
}

/// One host port of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HostPort {
    /// The port on the node.
    pub host_port: u32,
    /// The port in the pod.
    pub container_port: u32,
    /// `tcp`, `udp` or `sctp`, in lower case.
    pub protocol: String,
    /// The node's address it is bound to; empty means all.
    pub host_ip: String,
}

impl Record {
    /// Whether the record belongs to `boot`; another boot's pods are gone (S06).
    pub fn is_of(&self, boot: &BootId) -> bool {
        self.started.boot == *boot
    }

    /// Whether the other record is the same pod's same interface in another sandbox (K05). A caller that names no pod
    /// has none to replace.
    pub fn replaces(&self, other: &Record) -> bool {
        !self.pod.name.is_empty()
            && self.key != other.key
            && self.key.interface == other.key.interface
            && self.network == other.network
            && self.pod.namespace == other.pod.namespace
            && self.pod.name == other.pod.name
    }
}
