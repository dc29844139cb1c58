//! What one call is about: environment and configuration, understood. No I/O.

use std::collections::BTreeSet;

use aether_api::cni::{AddRequest, Attachment, CheckRequest, DelRequest, GcRequest, Managed, Netns, Pod};
use aether_domain::ids::NetworkName;
use aether_domain::key::Key;
use aether_domain::managed;
use serde_json::value::RawValue;

use crate::config::{Document, Entry, Input, Problem};
use crate::environment::{Command, Environment};
use crate::failure::{Failure, code};
use crate::{pod, version};

/// One call.
#[derive(Debug)]
pub struct Invocation<'a> {
    /// Our entry, as far as it can be used.
    pub entry: Entry,
    /// What of it cannot.
    pub problems: Vec<Problem>,
    /// The version of what is printed.
    pub version: &'static str,
    /// Whether the marker stands, once [`Self::resolve`] was told.
    pub marker: Marker,
    /// What is to be done.
    pub action: Action<'a>,
}

/// What is to be done, with the request to the agent; who calls and when is added by the shell.
#[derive(Debug)]
pub enum Action<'a> {
    /// Record the pod, then print what the plugins before us made.
    Add {
        /// The bytes of `prevResult` (K03).
        prev: &'a str,
        /// Whether the agent is asked.
        route: Route,
        /// The request.
        request: Box<AddRequest>,
    },
    /// Forget the attachment.
    Del {
        /// The attachment.
        key: Key,
        /// The network, where standard input named it.
        network: Option<NetworkName>,
        /// The request.
        request: DelRequest,
    },
    /// Compare the pod with what is known of it.
    Check {
        /// Whether the agent is asked.
        route: Route,
        /// The request.
        request: CheckRequest,
    },
    /// Forget what is not listed; `None` when there was no list, and nothing may be forgotten (K11).
    Gc(Option<GcRequest>),
    /// Say whether an ADD could be served.
    Status,
    /// Say which versions are known.
    Version,
}

/// Whether a pod concerns the agent (K06).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It does.
    Agent,
    /// Its namespace is ignored.
    IgnoredNamespace,
    /// We are uninstalled.
    Uninstalled,
}

impl Route {
    /// One word for the log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::IgnoredNamespace => "ignored-namespace",
            Self::Uninstalled => "uninstalled",
        }
    }
}

/// Whether the marker of an uninstall stands (I01).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// It does: nothing is managed and nothing is written.
    Stands,
    /// It does not, or could not be looked for.
    Absent,
}

impl<'a> Invocation<'a> {
    /// Understands a call; the version is that of the error document, if there is to be one.
    pub fn read(
        command: Command,
        environment: &Environment,
        input: &'a Input,
    ) -> Result<Self, (&'static str, Failure)> {
        let document = match command {
            // A DEL goes on without what it cannot read (K07).
            Command::Del => Document::parse_leniently(input),
            _ => Document::parse(input).map_err(|failure| (version::NEWEST, failure))?,
        };
        let version = match (command, document.version()) {
            (_, Ok(version)) => version,
            // Neither asks for a result of that version.
            (Command::Del | Command::Version, Err(_)) => version::NEWEST,
            (_, Err(failure)) => return Err((version::NEWEST, failure)),
        };
        let (entry, problems) = Entry::read(&document);
        let action = act(command, environment, &document, &entry).map_err(|failure| (version, failure))?;
        Ok(Self { entry, problems, version, marker: Marker::Absent, action })
    }

    /// Takes the marker into account, and what is wrong with the entry: that fails every call that would ask the agent
    /// by it, but a DEL.
    pub fn resolve(mut self, marker: Marker) -> Result<Self, Failure> {
        let tolerant =
            matches!(self.action, Action::Del { .. } | Action::Version) || marker == Marker::Stands;
        if let Some(problem) = self.problems.first().filter(|_| !tolerant) {
            return Err(problem.clone().into());
        }
        if marker == Marker::Stands
            && let Action::Add { route, .. } | Action::Check { route, .. } = &mut self.action
        {
            *route = Route::Uninstalled;
        }
        self.marker = marker;
        Ok(self)
    }
}

fn act<'a>(
    command: Command,
    environment: &Environment,
    document: &Document<'a>,
    entry: &Entry,
) -> Result<Action<'a>, Failure> {
    Ok(match command {
        Command::Add => add(environment, document, entry)?,
        Command::Del => {
            let key = environment.key()?;
            let network = document.network().ok().flatten();
            let request = DelRequest {
                caller: None,
                attachment: Some(attachment(&key)),
                network: network.as_ref().map(ToString::to_string).unwrap_or_default(),
            };
            Action::Del { key, network, request }
        }
        Command::Check => {
            let (key, netns) = environment.key_and_netns()?;
            let network = network(document)?;
            let request = CheckRequest {
                caller: None,
                attachment: Some(attachment(&key)),
                network,
                netns: Some(at(netns)),
            };
            let pod = described(environment, document, &key);
            Action::Check { route: route(&pod, entry), request }
        }
        Command::Gc => {
            let network = network(document)?;
            let valid = attachments(document)?;
            Action::Gc(valid.map(|valid| GcRequest { caller: None, network, valid }))
        }
        Command::Status => Action::Status,
        Command::Version => Action::Version,
    })
}

fn add<'a>(environment: &Environment, document: &Document<'a>, entry: &Entry) -> Result<Action<'a>, Failure> {
    let (key, netns) = environment.key_and_netns()?;
    let network = network(document)?;
    let prev = document.raw("prevResult").filter(|raw| raw.get().starts_with('{')).ok_or_else(|| {
        Failure::new(
            code::INVALID_CONFIG,
            "invalid network configuration",
            "\"prevResult\" is missing or no object: aether-cni must stand in a list, after the plugin that makes the interface",
        )
    })?;
    let pod = described(environment, document, &key);
    let annotation = pod.annotations.get(managed::ANNOTATION).map(String::as_str);
    let managed = match managed::decide(entry.mode, annotation) {
        managed::Managed::Yes => Managed::Yes,
        managed::Managed::OptedOut | managed::Managed::Ignored => Managed::OptedOut,
    };
    let route = route(&pod, entry);
    let request = AddRequest {
        caller: None,
        attachment: Some(attachment(&key)),
        network,
        netns: Some(at(netns)),
        pod: Some(pod),
        managed: managed.into(),
    };
    Ok(Action::Add { prev: prev.get(), route, request: Box::new(request) })
}

/// A caller that names no namespace (podman) has a pod like any other.
fn route(pod: &Pod, entry: &Entry) -> Route {
    if entry.ignored.contains(&pod.namespace) { Route::IgnoredNamespace } else { Route::Agent }
}

fn described(environment: &Environment, document: &Document<'_>, key: &Key) -> Pod {
    let args = environment.args.as_deref().unwrap_or_default().to_string_lossy();
    pod::read(&args, document.raw("runtimeConfig"), document.raw("prevResult"), key.interface.as_str())
}

fn network(document: &Document<'_>) -> Result<String, Failure> {
    let missing = Problem { key: "name", rule: "is missing: a list must have one" };
    Ok(document.network()?.ok_or(missing)?.into())
}

/// Both names of the list; libcni writes both. What either spares is spared (K11).
fn attachments(document: &Document<'_>) -> Result<Option<Vec<Attachment>>, Failure> {
    let mut valid: Option<BTreeSet<(String, String)>> = None;
    for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        let rule = "must be an array of objects with \"containerID\" and \"ifname\"";
        if let Some(list) = document.get::<Vec<&RawValue>>(key, rule)? {
            let valid = valid.get_or_insert_default();
            for raw in list {
                let listed: Listed = serde_json::from_str(raw.get()).map_err(|_| Problem { key, rule })?;
                valid.insert((listed.container, listed.interface));
            }
        }
    }
    let attachment = |(container_id, interface)| Attachment { container_id, interface };
    Ok(valid.map(|valid| valid.into_iter().map(attachment).collect()))
}

#[derive(serde::Deserialize)]
struct Listed {
    #[serde(rename = "containerID")]
    container: String,
    #[serde(rename = "ifname")]
    interface: String,
}

fn attachment(key: &Key) -> Attachment {
    Attachment { container_id: key.container.to_string(), interface: key.interface.to_string() }
}

fn at(path: String) -> Netns {
    Netns { path, inode: 0, created: 0 }
}

#[cfg(test)]
mod tests;
