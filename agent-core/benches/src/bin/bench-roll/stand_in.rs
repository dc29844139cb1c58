//! The comparison: agents that know no hand-over. The next one waits in flock(2), unlinks the socket's path, binds it anew
//! and serves. It answers Status and does nothing else at its takeover: no records, no tombstones, no modules.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use aether_api::cni::cni_server::{Cni, CniServer};
use aether_api::cni::{
    AddRequest, AddResponse, CheckRequest, CheckResponse, DelRequest, DelResponse, GcRequest, GcResponse,
    StatusRequest, StatusResponse,
};
use anyhow::{Context as _, Result, ensure};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixListener;
use tokio::signal::unix::SignalKind;
use tonic::{Request, Response, Status};

/// What it says when it waits for the lock.
const STANDS_BY: &str = "stands by";
/// What it says when it serves.
const SERVES: &str = "serves";

/// One agent of the comparison.
#[derive(Debug)]
pub(crate) struct StandIn {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl StandIn {
    /// Starts one that shares lock and socket with the others in `directory`.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let mut command = Command::new(program);
        command.args(["stand-in", "--lock"]).arg(directory.join("lock"));
        command.arg("--socket").arg(Self::socket(directory));
        let mut child = command.stdout(Stdio::piped()).spawn().context("start the stand-in")?;
        let said = BufReader::new(child.stdout.take().context("the stand-in's output")?);
        Ok(Self { child, said })
    }

    /// The socket that they share.
    pub(crate) fn socket(directory: &Path) -> PathBuf {
        directory.join("cni.sock")
    }

    /// Waits until it waits for the lock.
    pub(crate) fn stands_by(&mut self) -> Result<()> {
        self.says(STANDS_BY)
    }

    /// Waits until it serves.
    pub(crate) fn serves(&mut self) -> Result<()> {
        self.says(SERVES)
    }

    /// Sends SIGTERM and waits for its end.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).context("tell the stand-in to end")?;
        self.child.wait().context("wait for the stand-in")?;
        Ok(())
    }

    fn says(&mut self, what: &str) -> Result<()> {
        let mut line = String::new();
        while line.trim_end() != what {
            line.clear();
            ensure!(self.said.read_line(&mut line)? > 0, "the stand-in ended before it said {what:?}");
        }
        Ok(())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is one.
pub(crate) async fn run(lock: &Path, socket: &Path) -> Result<()> {
    let mut term = tokio::signal::unix::signal(SignalKind::terminate())?;
    let file = std::fs::File::create(lock).with_context(|| format!("open {}", lock.display()))?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        say(STANDS_BY)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).context("wait for the lock")?;
    }
    // That there is none is as good.
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).with_context(|| format!("bind {}", socket.display()))?;
    say(SERVES)?;
    let incoming = async_stream::stream! {
        loop {
            yield listener.accept().await.map(|(stream, _)| stream);
        }
    };
    tonic::transport::Server::builder()
        .add_service(CniServer::new(Answers))
        .serve_with_incoming_shutdown(incoming, async move {
            term.recv().await;
        })
        .await
        .context("serve")
}

fn say(what: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{what}").and_then(|()| out.flush()).context("say so")
}

/// Answers Status, and nothing else.
#[derive(Debug)]
struct Answers;

#[tonic::async_trait]
impl Cni for Answers {
    async fn status(&self, _: Request<StatusRequest>) -> Result<Response<StatusResponse>, Status> {
        Ok(Response::new(StatusResponse::default()))
    }

    async fn add(&self, _: Request<AddRequest>) -> Result<Response<AddResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn del(&self, _: Request<DelRequest>) -> Result<Response<DelResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn check(&self, _: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }

    async fn gc(&self, _: Request<GcRequest>) -> Result<Response<GcResponse>, Status> {
        Err(Status::unimplemented("a stand-in"))
    }
}
