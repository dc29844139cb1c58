//! Messages to domain types. Everything that comes in is bounded and checked here, once (O04).

use std::collections::{BTreeMap, BTreeSet};

use aether_api::cni;
use aether_domain::clock::{BootId, Stamp};
use aether_domain::format::Format;
use aether_domain::ids::{IdError, NetworkName, RequestId};
use aether_domain::key::Key;
use aether_domain::limits::{CALL_LIST_MAX, CALL_TEXT_MAX};
use aether_domain::managed::Managed;
use aether_domain::pods::{Check, Del, Gc};
use aether_domain::record::{HostPort, Netns, Pod, Record};

use crate::calls::About;

/// Why a message was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Invalid {
    #[error("the call lacks its {0}; the plugin and the agent do not fit together, update both")]
    Missing(&'static str),
    #[error("the call cannot be used")]
    Id(#[from] IdError),
    #[error("the call's {what} has {length} bytes, and {max} are allowed")]
    TooLong { what: &'static str, length: usize, max: usize },
    #[error("the call lists {count} {what}, and {max} are allowed")]
    TooMany { what: &'static str, count: usize, max: usize },
}

pub(crate) fn add(message: cni::AddRequest) -> Result<Record, Invalid> {
    let managed = match message.managed() {
        cni::Managed::OptedOut => Managed::OptedOut,
        // A value of a newer plugin too: managed is what every other pod is (K06, K15).
        cni::Managed::Yes | cni::Managed::Unspecified => Managed::Yes,
    };
    let caller = message.caller.ok_or(Invalid::Missing("caller"))?;
    let netns = message.netns.unwrap_or_default();
    Ok(Record {
        format: Format::V1,
        key: key(message.attachment)?,
        network: network(message.network)?,
        started: stamp(&caller),
        request_id: RequestId::try_from(caller.request_id)?,
        managed,
        netns: Netns { path: text("network namespace's path", netns.path)?, inode: netns.inode },
        pod: pod(message.pod.unwrap_or_default())?,
        policy_labels: BTreeMap::new(),
    })
}

pub(crate) fn del(message: cni::DelRequest) -> Result<Del, Invalid> {
    // A DEL without its start began at the latest now, which is what a boot of no name comes to.
    let caller = message.caller.unwrap_or_default();
    Ok(Del {
        key: key(message.attachment)?,
        started: stamp(&caller),
        request_id: RequestId::try_from(caller.request_id)?,
    })
}

pub(crate) fn check(message: cni::CheckRequest) -> Result<Check, Invalid> {
    let created = message.netns.map_or(0, |netns| netns.created);
    Ok(Check { key: key(message.attachment)?, netns_created: (created != 0).then_some(created) })
}

pub(crate) fn gc(message: cni::GcRequest) -> Result<Gc, Invalid> {
    let caller = message.caller.ok_or(Invalid::Missing("caller"))?;
    // An attachment whose id is not valid has no record that could be spared.
    let valid: BTreeSet<Key> = message.valid.into_iter().filter_map(|valid| key(Some(valid)).ok()).collect();
    Ok(Gc { network: network(message.network)?, valid, started: stamp(&caller) })
}

/// What the log says of a call, also of one that is refused; cut, because it may be anything.
pub(crate) fn about(
    caller: Option<&cni::Caller>,
    attachment: Option<&cni::Attachment>,
    pod: Option<&cni::Pod>,
) -> About {
    let cut = |text: &str| text.chars().take(256).collect::<String>();
    About {
        request_id: caller.map(|caller| cut(&caller.request_id)).unwrap_or_default(),
        key: attachment.map(|a| cut(&format!("{}/{}", a.container_id, a.interface))).unwrap_or_default(),
        pod: pod.map(|pod| cut(&format!("{}/{}", pod.namespace, pod.name))).unwrap_or_default(),
    }
}

fn key(attachment: Option<cni::Attachment>) -> Result<Key, Invalid> {
    let attachment = attachment.ok_or(Invalid::Missing("attachment"))?;
    Ok(Key::new(attachment.container_id.try_into()?, attachment.interface.try_into()?))
}

fn network(name: String) -> Result<NetworkName, Invalid> {
    Ok(NetworkName::try_from(name)?)
}

fn stamp(caller: &cni::Caller) -> Stamp {
    let boot = BootId::new(caller.boot_id.get(..64).unwrap_or(&caller.boot_id));
    Stamp::new(boot, caller.boottime_ns)
}

fn pod(pod: cni::Pod) -> Result<Pod, Invalid> {
    few("annotations", pod.annotations.len())?;
    few("host ports", pod.host_ports.len())?;
    few("addresses", pod.addresses.len())?;
    let host_port = |port: cni::HostPort| {
        Ok(HostPort {
            host_port: port.host_port,
            container_port: port.container_port,
            protocol: text("host port's protocol", port.protocol)?,
            host_ip: text("host port's address", port.host_ip)?,
        })
    };
    Ok(Pod {
        namespace: text("pod's namespace", pod.namespace)?,
        name: text("pod's name", pod.name)?,
        uid: text("pod's uid", pod.uid)?,
        annotations: pod.annotations.into_iter().collect(),
        host_ports: pod.host_ports.into_iter().map(host_port).collect::<Result<_, Invalid>>()?,
        addresses: pod.addresses.into_iter().map(|a| text("address", a)).collect::<Result<_, Invalid>>()?,
    })
}

fn text(what: &'static str, value: String) -> Result<String, Invalid> {
    let length = value.len();
    if length > CALL_TEXT_MAX {
        Err(Invalid::TooLong { what, length, max: CALL_TEXT_MAX })
    } else {
        Ok(value)
    }
}

fn few(what: &'static str, count: usize) -> Result<(), Invalid> {
    if count > CALL_LIST_MAX { Err(Invalid::TooMany { what, count, max: CALL_LIST_MAX }) } else { Ok(()) }
}
