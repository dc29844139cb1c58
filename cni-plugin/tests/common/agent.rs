//! An agent that does what a test tells it.

use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use aether_api::cni::cni_server::{Cni, CniServer};
use aether_api::cni::{
    AddRequest, AddResponse, CheckRequest, CheckResponse, DelRequest, DelResponse, GcRequest, GcResponse,
    Known, StatusRequest, StatusResponse,
};
use tonic::{Request, Response, Status};

/// How the agent answers.
#[derive(Clone)]
pub enum Mood {
    /// As it should.
    Serving,
    /// Never.
    Silent,
    /// As it should, after a while.
    Slow(Duration),
    /// With this status.
    Refusing(tonic::Code),
    /// As it should; a CHECK is answered with this.
    Knowing(Known),
}

/// What was asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Add(AddRequest),
    Del(DelRequest),
    Check(CheckRequest),
    Gc(GcRequest),
    Status(StatusRequest),
}

#[derive(Clone)]
struct Service {
    mood: Arc<Mutex<Mood>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Service {
    async fn serve<T>(&self, asked: Asked, answer: impl FnOnce(&Mood) -> T) -> Result<Response<T>, Status> {
        self.asked.lock().unwrap().push(asked);
        let mood = self.mood.lock().unwrap().clone();
        match mood {
            Mood::Refusing(code) => return Err(Status::new(code, "the test says so")),
            Mood::Silent => std::future::pending().await,
            // pause: this peer is late on cue
            Mood::Slow(wait) => tokio::time::sleep(wait).await,
            Mood::Serving | Mood::Knowing(_) => {}
        }
        Ok(Response::new(answer(&mood)))
    }
}

#[tonic::async_trait]
impl Cni for Service {
    async fn add(&self, request: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        self.serve(Asked::Add(request.into_inner()), |_| AddResponse {}).await
    }
    async fn del(&self, request: Request<DelRequest>) -> Result<Response<DelResponse>, Status> {
        self.serve(Asked::Del(request.into_inner()), |_| DelResponse { existed: true }).await
    }
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        self.serve(Asked::Check(request.into_inner()), |mood| CheckResponse {
            known: match mood {
                Mood::Knowing(known) => *known,
                _ => Known::Managed,
            }
            .into(),
        })
        .await
    }
    async fn gc(&self, request: Request<GcRequest>) -> Result<Response<GcResponse>, Status> {
        self.serve(Asked::Gc(request.into_inner()), |_| GcResponse { removed: 0 }).await
    }
    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        self.serve(Asked::Status(request.into_inner()), |_| StatusResponse { agent_version: "test".into() })
            .await
    }
}

/// A connection that is counted while it is open.
struct Counted {
    stream: tokio::net::UnixStream,
    #[expect(dead_code, reason = "it is counted")]
    open: Arc<()>,
}

impl tokio::io::AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl tokio::io::AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl tonic::transport::server::Connected for Counted {
    type ConnectInfo = ();
    fn connect_info(&self) {}
}

/// A running agent; the drop ends it, with its connections.
pub struct Agent {
    service: Service,
    open: Arc<()>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Agent {
    /// Listens on `socket`, by temporary name and rename.
    pub fn start(socket: &Path, mood: Mood) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let temporary = socket.with_extension("new");
        let listener = {
            let _inside = runtime.enter();
            tokio::net::UnixListener::bind(&temporary).unwrap()
        };
        std::fs::rename(&temporary, socket).unwrap();
        let service = Service { mood: Arc::new(Mutex::new(mood)), asked: Arc::default() };
        let open = Arc::new(());
        let counter = Arc::clone(&open);
        let incoming: Pin<Box<dyn futures_core::Stream<Item = _> + Send>> = Box::pin(async_stream::stream! {
            loop {
                let stream = listener.accept().await.map(|(stream, _)| stream);
                let open = Arc::clone(&counter);
                yield stream.map(|stream| Counted { stream, open });
            }
        });
        let server = tonic::transport::Server::builder().add_service(CniServer::new(service.clone()));
        runtime.spawn(server.serve_with_incoming(incoming));
        Self { service, open, runtime: Some(runtime) }
    }

    pub fn be(&self, mood: Mood) {
        *self.service.mood.lock().unwrap() = mood;
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.service.asked.lock().unwrap().clone()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        // One is the agent's own, one the listener's.
        Arc::strong_count(&self.open) - 2
    }

    /// The only ADD that was asked for.
    #[track_caller]
    pub fn added(&self) -> AddRequest {
        match self.asked().as_slice() {
            [Asked::Add(request)] => request.clone(),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(10));
        }
    }
}
