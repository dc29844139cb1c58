//! Our entry in the list (I09).

use aether_domain::managed::Mode;
use aether_domain::paths;
use serde::Serialize;
use serde_json::Value;

/// What the entry says that an installer can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The agent's socket.
    pub agent_socket: String,
    /// The state directory.
    pub state_dir: String,
    /// The time an ADD waits for the agent.
    pub add_deadline_seconds: u64,
    /// Namespaces left alone.
    pub ignored_namespaces: Vec<String>,
    /// The namespace of the release itself.
    pub release_namespace: Option<String>,
    /// Which pods are managed when nothing is said.
    pub managed: Mode,
    /// The plugin's log level.
    pub log_level: Option<String>,
}

/// The entry in the order in which a person reads it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    name: &'static str,
    r#type: &'static str,
    agent_socket: &'a str,
    state_dir: &'a str,
    add_deadline_seconds: u64,
    ignored_namespaces: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    release_namespace: Option<&'a str>,
    managed: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<&'a str>,
    capabilities: Capabilities,
}

/// What the runtime is asked to pass on in `runtimeConfig`.
#[derive(Serialize)]
struct Capabilities {
    #[serde(rename = "io.kubernetes.cri.pod-annotations")]
    pod_annotations: bool,
    #[serde(rename = "portMappings")]
    port_mappings: bool,
}

/// The entry: as text for the list, and as the value that it is compared by.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One JSON object.
    pub text: String,
    /// The same, parsed.
    pub value: Value,
}

/// Why there is no entry.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the entry as JSON")]
pub struct EntryError(#[from] serde_json::Error);

impl Entry {
    /// The entry with these options.
    pub fn new(options: &Options) -> Result<Self, EntryError> {
        let text = serde_json::to_string(&Shape {
            name: paths::ENTRY_NAME,
            r#type: paths::PLUGIN,
            agent_socket: &options.agent_socket,
            state_dir: &options.state_dir,
            add_deadline_seconds: options.add_deadline_seconds,
            ignored_namespaces: &options.ignored_namespaces,
            release_namespace: options.release_namespace.as_deref(),
            managed: options.managed,
            log_level: options.log_level.as_deref(),
            capabilities: Capabilities { pod_annotations: true, port_mappings: true },
        })?;
        let value = serde_json::from_str(&text)?;
        Ok(Self { text, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i09_the_entry_says_name_type_socket_and_capabilities() {
        let options = Options {
            agent_socket: "/run/aether/cni.sock".to_owned(),
            state_dir: "/var/lib/aether".to_owned(),
            add_deadline_seconds: 5,
            ignored_namespaces: vec!["infra".to_owned()],
            release_namespace: Some("mesh".to_owned()),
            managed: Mode::OptIn,
            log_level: None,
        };
        let entry = Entry::new(&options).unwrap();
        let expected = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock","stateDir":"/var/lib/aether","addDeadlineSeconds":5,"ignoredNamespaces":["infra"],"releaseNamespace":"mesh","managed":"opt-in","capabilities":{"io.kubernetes.cri.pod-annotations":true,"portMappings":true}}"#;
        assert_eq!(entry.text, expected);
        assert_eq!(entry.value, serde_json::from_str::<Value>(expected).unwrap());
    }
}
