//! A server on a socket, clients of it, and a service whose answers the test decides.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aether_api::cni::cni_client::CniClient;
use aether_api::cni::{self, Attachment};
use aether_cni_server::{Answered, Calls, Handle, ServeError, Server};
use aether_domain::pods::table::{Add, Removal};
use aether_domain::pods::{
    AddError, Added, Caller, Check, Del, Deleted, Gc, Known, PodService, ServiceError, Table,
};
use aether_domain::record::Record;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

pub(crate) const BOOT: &str = "boot-1";
/// Ten times and more what anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A service that decides as the real one does, in memory, and that waits where a test wants it to.
pub(crate) struct Scripted {
    pub(crate) table: Mutex<Table>,
    /// What an ADD or DEL takes one of before it acts.
    pub(crate) gate: Semaphore,
    /// The callers of the ADDs that have begun.
    pub(crate) callers: Mutex<Vec<Arc<dyn Caller>>>,
    /// The records that ADDs came with.
    pub(crate) added: Mutex<Vec<Record>>,
    /// What the next call fails with.
    pub(crate) fails: Mutex<Option<AddError>>,
}

impl Scripted {
    /// A service that waits for nothing.
    pub(crate) fn open() -> Arc<Self> {
        Self::with_gate(Semaphore::MAX_PERMITS)
    }

    /// A service in which ADDs and DELs wait until the test lets them pass.
    pub(crate) fn closed() -> Arc<Self> {
        Self::with_gate(0)
    }

    fn with_gate(permits: usize) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(Table::new(aether_domain::clock::BootId::new(BOOT))),
            gate: Semaphore::new(permits),
            callers: Mutex::default(),
            added: Mutex::default(),
            fails: Mutex::default(),
        })
    }

    pub(crate) fn containers(&self) -> Vec<String> {
        self.table.lock().unwrap().records().map(|record| record.key.container.to_string()).collect()
    }
}

impl PodService for Scripted {
    async fn add(&self, record: Record, caller: Arc<dyn Caller>) -> Result<Added, AddError> {
        self.callers.lock().unwrap().push(caller);
        self.added.lock().unwrap().push(record.clone());
        self.gate.acquire().await.unwrap().forget();
        if let Some(error) = self.fails.lock().unwrap().take() {
            return Err(error);
        }
        let mut table = self.table.lock().unwrap();
        match table.add(&record, 1_000) {
            Add::Refuse(refusal) => Err(refusal.into()),
            Add::Standing => Ok(Added::Standing),
            Add::Write { .. } => {
                let replaced = table.replaced_by(&record);
                for old in &replaced {
                    table.removed(old);
                }
                table.recorded(record);
                Ok(if replaced.is_empty() { Added::Recorded } else { Added::Replaced(replaced) })
            }
        }
    }

    async fn del(&self, del: Del) -> Result<Deleted, ServiceError> {
        self.gate.acquire().await.unwrap().forget();
        let mut table = self.table.lock().unwrap();
        Ok(match table.del(&del.key, &del.started, 1_000) {
            Removal::Remove(record) => {
                table.removed(&del.key);
                Deleted::Removed(record)
            }
            Removal::Spared => Deleted::Spared,
            Removal::Absent | Removal::OtherBoot => Deleted::Absent,
        })
    }

    async fn check(&self, check: Check) -> Result<Known, ServiceError> {
        Ok(self.table.lock().unwrap().check(&check.key, check.netns_created, Some(1_000)))
    }

    async fn gc(&self, gc: Gc) -> Result<usize, ServiceError> {
        let mut table = self.table.lock().unwrap();
        let stale = table.gc(&gc.network, &gc.valid, &gc.started);
        for key in &stale {
            table.removed(key);
        }
        Ok(stale.len())
    }

    async fn status(&self) -> Result<(), ServiceError> {
        match self.fails.lock().unwrap().take() {
            None => Ok(()),
            Some(error) => {
                Err(ServiceError::Storage { what: "keep records".to_owned(), source: error.into() })
            }
        }
    }
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) answered: Mutex<Vec<Answered>>,
    pub(crate) refused: Mutex<usize>,
}

impl Calls for Counted {
    fn answered(&self, call: &Answered) {
        self.answered.lock().unwrap().push(call.clone());
    }

    fn peer_refused(&self) {
        *self.refused.lock().unwrap() += 1;
    }
}

/// A server that runs.
pub(crate) struct Running {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
    pub(crate) handle: Handle,
    pub(crate) counted: Arc<Counted>,
    pub(crate) served: JoinSet<Result<(), ServeError>>,
    /// Ends the session.
    pub(crate) until: CancellationToken,
    listener: Arc<tokio::net::UnixListener>,
    server: Server<Scripted>,
}

impl Running {
    pub(crate) fn start(service: &Arc<Scripted>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cni.sock");
        let counted = Arc::<Counted>::default();
        let calls: Arc<Counted> = Arc::clone(&counted);
        let server = Server::new(Arc::clone(service), calls, "9.9.9");
        let handle = server.handle();
        let bound = aether_durable::socket::bind(&path).unwrap();
        let listener = Arc::new(tokio::net::UnixListener::from_std(bound.listener).unwrap());
        let (tasks, until) = (JoinSet::new(), CancellationToken::new());
        let mut running = Self { _dir: dir, path, handle, counted, served: tasks, until, listener, server };
        running.session();
        running
    }

    /// Begins a session on the same listener.
    pub(crate) fn session(&mut self) {
        self.until = CancellationToken::new();
        self.served.spawn(self.server.serve(Arc::clone(&self.listener), self.until.clone()));
    }

    /// Waits for the end of the session.
    pub(crate) async fn ended(&mut self) {
        let ended = tokio::time::timeout(PATIENCE, self.served.join_next()).await;
        ended.expect("it does not end").unwrap().unwrap().unwrap();
    }

    pub(crate) async fn client(&self) -> CniClient<Channel> {
        client(&self.path).await
    }
}

/// A client with a connection of its own, as each plugin has.
pub(crate) async fn client(path: &Path) -> CniClient<Channel> {
    CniClient::new(try_channel(path).await.unwrap())
}

pub(crate) async fn try_channel(path: &Path) -> Result<Channel, tonic::transport::Error> {
    let path = path.to_owned();
    let connect = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://aether").connect_with_connector(connect).await
}

pub(crate) fn caller(started: u64) -> cni::Caller {
    cni::Caller {
        request_id: format!("req-{started}"),
        plugin_version: "0".to_owned(),
        boot_id: BOOT.to_owned(),
        boottime_ns: started,
    }
}

pub(crate) fn attachment(container: &str) -> Attachment {
    Attachment { container_id: container.to_owned(), interface: "eth0".to_owned() }
}

pub(crate) fn add_request(container: &str, pod: &str, started: u64) -> cni::AddRequest {
    cni::AddRequest {
        caller: Some(caller(started)),
        attachment: Some(attachment(container)),
        network: "net".to_owned(),
        netns: Some(cni::Netns { path: "/run/netns/x".to_owned(), inode: 7, created: 8 }),
        pod: Some(cni::Pod { namespace: "default".to_owned(), name: pod.to_owned(), ..cni::Pod::default() }),
        managed: cni::Managed::Yes.into(),
    }
}

pub(crate) fn del_request(container: &str, started: u64) -> cni::DelRequest {
    cni::DelRequest {
        caller: Some(caller(started)),
        attachment: Some(attachment(container)),
        network: "net".to_owned(),
    }
}

/// Waits until `condition` holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        // pause: of the poll
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
