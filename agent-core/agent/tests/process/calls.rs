//! Calls as the plugin and `aetherctl` make them, and the bytes of records and tombstones.

use std::path::Path;

use aether_api::admin::admin_client::AdminClient;
use aether_api::admin::{
    ChainRequest, ChainResponse, ConditionsRequest, ConditionsResponse, Event, EventsRequest,
    LogLevelRequest, Module, ModulesRequest, ModulesResponse, PodsRequest, PodsResponse, TakeoverRequest,
    TakeoverResponse,
};
use aether_api::cni::cni_client::CniClient;
use aether_api::cni::{
    AddRequest, Attachment, Caller, CheckRequest, DelRequest, Known, Managed, Netns, Pod, StatusRequest,
};
use aether_domain::clock::Stamp;
use aether_domain::format::Format;
use aether_domain::key::Key;
use aether_domain::record::{self, Record};
use aether_domain::tombstone::Tombstone;
use aether_durable::boot;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::support::{Agent, Node, PATIENCE};

async fn channel(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let socket = socket.to_owned();
    let connect = move |_: Uri| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    };
    Endpoint::from_static("http://agent").connect_with_connector(tower::service_fn(connect)).await
}

/// The plugin's side.
pub(crate) struct Plugin(CniClient<Channel>);

pub(crate) async fn plugin(node: &Node) -> Plugin {
    try_plugin(node).await.unwrap()
}

/// For an agent that may be gone.
pub(crate) async fn try_plugin(node: &Node) -> Result<Plugin, tonic::transport::Error> {
    Ok(Plugin(CniClient::new(channel(&node.run("cni.sock")).await?)))
}

pub(crate) fn caller(started: &Stamp) -> Caller {
    Caller {
        request_id: format!("test-{}", started.nanos),
        plugin_version: "0.0.0".to_owned(),
        boot_id: started.boot.to_string(),
        boottime_ns: started.nanos,
    }
}

fn attachment(id: &str) -> Attachment {
    Attachment { container_id: id.to_owned(), interface: "eth0".to_owned() }
}

/// A namespace that is there for as long as the test: its own.
pub(crate) const NETNS: &str = "/proc/self/ns/net";

impl Plugin {
    pub(crate) async fn add(&mut self, id: &str) -> Result<Stamp, Status> {
        self.add_pod(id, "prod", &format!("pod-{id}")).await
    }

    /// An ADD of a pod of this namespace and name.
    pub(crate) async fn add_pod(&mut self, id: &str, namespace: &str, name: &str) -> Result<Stamp, Status> {
        let started = boot::now().unwrap();
        let request = AddRequest {
            caller: Some(caller(&started)),
            attachment: Some(attachment(id)),
            network: "cbr0".to_owned(),
            netns: Some(Netns { path: NETNS.to_owned(), inode: 0, created: 0 }),
            pod: Some(Pod {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                uid: format!("uid-{id}"),
                addresses: vec!["10.244.1.2/24".to_owned()],
                ..Pod::default()
            }),
            managed: Managed::Yes.into(),
        };
        self.0.add(request).await?;
        Ok(started)
    }

    pub(crate) async fn del(&mut self, id: &str) -> Result<bool, Status> {
        let request = DelRequest {
            caller: Some(caller(&boot::now().unwrap())),
            attachment: Some(attachment(id)),
            network: "cbr0".to_owned(),
        };
        Ok(self.0.del(request).await?.into_inner().existed)
    }

    pub(crate) async fn check(&mut self, id: &str) -> Result<Known, Status> {
        let request = CheckRequest {
            caller: Some(caller(&boot::now().unwrap())),
            attachment: Some(attachment(id)),
            network: "cbr0".to_owned(),
            netns: None,
        };
        Ok(self.0.check(request).await?.into_inner().known())
    }

    pub(crate) async fn status(&mut self) -> Result<(), Status> {
        let request = StatusRequest { caller: Some(caller(&boot::now().unwrap())) };
        self.0.status(request).await.map(|_| ())
    }
}

/// The admin socket's side.
pub(crate) struct Admin(AdminClient<Channel>);

pub(crate) async fn admin(agent: &Agent) -> Admin {
    agent.logged("the admin socket is answered");
    Admin(AdminClient::new(channel(&agent.admin_socket()).await.unwrap()))
}

impl Admin {
    pub(crate) async fn pods(&mut self) -> PodsResponse {
        self.0.pods(PodsRequest {}).await.unwrap().into_inner()
    }

    pub(crate) async fn chain(&mut self) -> ChainResponse {
        self.0.chain(ChainRequest {}).await.unwrap().into_inner()
    }

    pub(crate) async fn modules(&mut self) -> ModulesResponse {
        self.0.modules(ModulesRequest {}).await.unwrap().into_inner()
    }

    /// One module, once it is so.
    pub(crate) async fn module(&mut self, name: &str, what: &str, so: impl Fn(&Module) -> bool) -> Module {
        let began = std::time::Instant::now();
        loop {
            let all = self.modules().await;
            let found = all.modules.iter().find(|module| module.name == name);
            if let Some(module) = found.filter(|module| so(module)) {
                return module.clone();
            }
            assert!(began.elapsed() < PATIENCE, "never {name} {what}; last: {all:?}");
            // pause: between two looks of a poll with a deadline
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn events(&mut self) -> Vec<Event> {
        self.0.events(EventsRequest {}).await.unwrap().into_inner().events
    }

    pub(crate) async fn conditions(&mut self) -> ConditionsResponse {
        self.0.conditions(ConditionsRequest {}).await.unwrap().into_inner()
    }

    pub(crate) async fn takeover(&mut self) -> TakeoverResponse {
        self.0.takeover(TakeoverRequest {}).await.unwrap().into_inner()
    }

    pub(crate) async fn log_level(&mut self, directives: &str) -> Result<String, Status> {
        let request = LogLevelRequest { directives: directives.to_owned() };
        Ok(self.0.log_level(request).await?.into_inner().directives)
    }
}

/// What the probes' socket answers: the status code and the body.
pub(crate) fn readiness(agent: &Agent) -> (u16, String) {
    probe(agent, "/readyz")
}

pub(crate) fn probe(agent: &Agent, path: &str) -> (u16, String) {
    use std::io::{Read as _, Write as _};
    agent.logged("the admin socket is answered");
    let mut stream = std::os::unix::net::UnixStream::connect(agent.local("health.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

pub(crate) fn key(id: &str) -> Key {
    Key::new(id.parse().unwrap(), "eth0".parse().unwrap())
}

/// A record as an agent would have written it.
pub(crate) fn record(id: &str, started: Stamp) -> Record {
    Record {
        format: Format::V1,
        key: key(id),
        network: "cbr0".parse().unwrap(),
        started,
        request_id: "earlier".parse().unwrap(),
        managed: aether_domain::managed::Managed::Yes,
        netns: record::Netns { path: NETNS.to_owned(), inode: 0 },
        pod: record::Pod {
            namespace: "prod".to_owned(),
            name: format!("pod-{id}"),
            ..record::Pod::default()
        },
        policy_labels: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn record_file(id: &str) -> String {
    key(id).file_stem() + ".json"
}

/// Puts a record where an agent would have put it.
pub(crate) fn put_record(node: &Node, record: &Record) {
    std::fs::create_dir_all(node.state("pods")).unwrap();
    let file = node.state("pods").join(record.key.file_stem() + ".json");
    std::fs::write(file, serde_json::to_vec(record).unwrap()).unwrap();
}

/// Writes a tombstone as the plugin does, and returns its path.
pub(crate) fn put_tombstone(node: &Node, id: &str, started: Stamp) -> std::path::PathBuf {
    let tombstone = Tombstone {
        format: Format::V1,
        key: key(id),
        network: Some("cbr0".parse().unwrap()),
        started,
        request_id: "gone".parse().unwrap(),
    };
    aether_durable::atomic::create_dir_all(&node.state("deletes"), 0o700).unwrap();
    let path = node.state("deletes").join(tombstone.file_name());
    let bytes = serde_json::to_vec(&tombstone).unwrap();
    aether_durable::atomic::replace(&path, &bytes, &aether_durable::Attributes::with_mode(0o600)).unwrap();
    path
}
