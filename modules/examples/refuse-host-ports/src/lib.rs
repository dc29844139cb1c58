//! No pod takes a port of the node, but for a range, and but for certain namespaces.

use aether_module::PodPolicy;
use aether_module::policy::{Denial, Fault, Pod, Verdict};
use serde::Deserialize;

/// What the policy is told.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Ports that may be taken.
    allowed: Vec<Range>,
    /// Namespaces that may take any.
    namespaces: Vec<String>,
}

/// Ports, from the first to the last.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    first: u16,
    last: u16,
}

/// The policy.
#[derive(Debug)]
pub struct RefuseHostPorts(Settings);

impl PodPolicy for RefuseHostPorts {
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, String> {
        if let Some(range) = settings.allowed.iter().find(|range| range.first > range.last) {
            return Err(format!("allowed: {} to {} is no range", range.first, range.last));
        }
        Ok(Self(settings))
    }

    fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault> {
        if pod.host_ports.is_empty() {
            return Ok(Verdict::Abstain);
        }
        if self.0.namespaces.contains(&pod.namespace) {
            return Ok(Verdict::Admit);
        }
        let allowed =
            |port: u16| self.0.allowed.iter().any(|range| (range.first..=range.last).contains(&port));
        Ok(match pod.host_ports.iter().find(|host| !allowed(host.host_port)) {
            None => Verdict::Admit,
            Some(host) => Verdict::Deny(Denial {
                code: "host-port".to_owned(),
                message: format!("host port {}/{} is not allowed here", host.host_port, host.protocol),
                retry: false,
            }),
        })
    }
}

aether_module::export_pod_policy!(RefuseHostPorts);

#[cfg(test)]
mod tests {
    use super::*;
    use aether_module::policy::{HostPort, pod};

    fn verdict(namespace: &str, ports: &[u16]) -> Verdict {
        let settings = Settings {
            allowed: vec![Range { first: 100, last: 200 }],
            namespaces: vec!["ingress".to_owned()],
        };
        let mut pod = pod(namespace, "web");
        let host = |port: &u16| HostPort {
            host_port: *port,
            container_port: 80,
            protocol: "tcp".to_owned(),
            host_ip: String::new(),
        };
        pod.host_ports = ports.iter().map(host).collect();
        RefuseHostPorts::new(settings).unwrap().evaluate(&pod).unwrap()
    }

    #[test]
    fn m12_a_host_port_outside_the_range_is_denied_and_named() {
        assert_eq!(verdict("shop", &[]), Verdict::Abstain);
        assert_eq!(verdict("shop", &[100, 200]), Verdict::Admit);
        assert_eq!(verdict("ingress", &[80]), Verdict::Admit);
        let denied = verdict("shop", &[150, 80]);
        assert!(matches!(&denied, Verdict::Deny(denial) if denial.message.contains("80/tcp")), "{denied:?}");
        let settings = Settings { allowed: vec![Range { first: 2, last: 1 }], namespaces: vec![] };
        assert!(RefuseHostPorts::new(settings).is_err());
    }
}
