//! What pods leave on a node: everything that must be gone when the last one is.

use crate::node::Node;

/// What is on a node on account of pods. With no pod, nothing is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Residue {
    /// The node's ends of pods' interfaces.
    pub veths: Vec<String>,
    /// Addresses that host-local has given away.
    pub addresses: Vec<String>,
    /// Rules of port maps that name an address.
    pub port_maps: Vec<String>,
    /// Network namespaces.
    pub netns: Vec<String>,
    /// The runtime's cached results.
    pub results: Vec<String>,
    /// Our records, by file name.
    pub records: Vec<String>,
    /// Our tombstones.
    pub tombstones: Vec<String>,
}

impl Residue {
    /// Whether nothing is there.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Node {
    /// Looks at everything that pods leave.
    pub fn residue(&self) -> anyhow::Result<Residue> {
        let links = self.run(&["ip", "-o", "link", "show", "type", "veth"])?;
        let veths = links.lines().filter_map(|line| line.split(": ").nth(1)).map(str::to_owned).collect();
        let mut addresses = Vec::new();
        for network in self.files("/var/lib/cni/networks")? {
            let leased = self.files(&format!("/var/lib/cni/networks/{network}"))?;
            addresses
                .extend(leased.into_iter().filter(|name| name.starts_with(|c: char| c.is_ascii_digit())));
        }
        let rules = self.run(&["iptables", "-t", "nat", "-S"])?;
        let port_maps =
            rules.lines().filter(|rule| rule.contains("--to-destination")).map(str::to_owned).collect();
        Ok(Residue {
            veths,
            addresses,
            port_maps,
            netns: self.files("/run/netns")?,
            results: self.files("/var/lib/cni/results")?,
            records: self.files("/var/lib/aether/pods")?,
            tombstones: self.tombstones()?,
        })
    }
}
