//! The lists that a node can be given, and what flannel's plugin reads beside its list.

/// Where flannel's list lies.
pub const FLANNEL_FILE: &str = "10-flannel.conflist";

/// What flannel's daemon writes to `/run/flannel/subnet.env`.
pub const SUBNET_ENV: &str =
    "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";

/// flannel's list, byte for byte as its manifest has it.
pub const FLANNEL: &str = r#"{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {
      "type": "flannel",
      "delegate": {
        "hairpinMode": true,
        "isDefaultGateway": true
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      }
    }
  ]
}
"#;

/// A list with what flannel delegates to, for the versions that flannel's plugin does not know. With no version the
/// key is absent, which is legal.
pub fn bridge(name: &str, version: Option<&str>) -> String {
    let version = version.map(|version| format!("  \"cniVersion\": \"{version}\",\n")).unwrap_or_default();
    format!(
        r#"{{
  "name": "{name}",
{version}  "plugins": [
    {{
      "type": "bridge",
      "bridge": "cni0",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "mtu": 1450,
      "ipam": {{
        "type": "host-local",
        "ranges": [[{{"subnet": "10.244.1.0/24"}}]],
        "routes": [{{"dst": "10.244.0.0/16"}}]
      }}
    }},
    {{
      "type": "portmap",
      "capabilities": {{"portMappings": true}}
    }}
  ]
}}
"#
    )
}
