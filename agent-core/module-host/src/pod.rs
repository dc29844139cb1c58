//! A pod as policies see it, from what CNI tells of it (I09).

use aether_domain::record::Record;

pub use crate::bindings::exports::aether::policy::pods::{HostPort, Pod};

/// The pod of a record that is about to be written. Labels and service account are unknown to CNI and not guessed.
pub fn of(record: &Record) -> Pod {
    let port = |port: u32| u16::try_from(port).unwrap_or_default();
    let host_ports = record.pod.host_ports.iter().map(|host| HostPort {
        host_port: port(host.host_port),
        container_port: port(host.container_port),
        protocol: host.protocol.clone(),
        host_ip: host.host_ip.clone(),
    });
    Pod {
        namespace: record.pod.namespace.clone(),
        name: record.pod.name.clone(),
        uid: record.pod.uid.clone(),
        service_account: None,
        labels: None,
        annotations: record.pod.annotations.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        host_ports: host_ports.collect(),
        addresses: record.pod.addresses.clone(),
        sandbox_id: record.key.container.as_str().to_owned(),
        ifname: record.key.interface.as_str().to_owned(),
        netns: record.netns.path.clone(),
        network: record.network.as_str().to_owned(),
        extra: Vec::new(),
    }
}
