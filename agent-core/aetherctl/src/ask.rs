//! Asking the agent, and saying plainly when nothing answers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aether_api::admin::admin_client::AdminClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Response, Status};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("no agent answers on {socket}: {}", remedy(.source))]
    Unreachable {
        socket: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot talk to the agent on {socket}")]
    Transport {
        socket: PathBuf,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("the agent on {socket} did not answer within {} s; look at its logs, it may be stopped or overloaded", DEADLINE.as_secs())]
    Late { socket: PathBuf },
    #[error(
        "the agent on {socket} is older than this aetherctl and cannot {what}; use the aetherctl of its own image"
    )]
    TooOld { socket: PathBuf, what: &'static str },
    #[error("the agent on {socket} would not {what}: {message}")]
    Refused { socket: PathBuf, what: &'static str, message: String },
}

/// Within which an answer is expected. It comes within milliseconds.
const DEADLINE: Duration = Duration::from_secs(10);
/// Records of some thousand pods with all their annotations.
const ANSWER_MAX: usize = 256 * 1024 * 1024;

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no such socket; run this where the agent runs (kubectl exec into its pod), or name its \
             <local-dir>/admin.sock with --admin-socket"
        }
        io::ErrorKind::ConnectionRefused => {
            "the agent that made this socket has ended; see whether one runs, and look at its logs"
        }
        io::ErrorKind::PermissionDenied => "only root may ask; run this as root",
        _ => "see that --admin-socket names the agent's socket",
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A connected agent.
#[derive(Debug)]
pub(crate) struct Admin {
    client: AdminClient<Channel>,
    socket: PathBuf,
}

impl Admin {
    /// Connects, so that a missing agent is told from one that fails to answer.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, AskError> {
        let unreachable = |source| AskError::Unreachable { socket: socket.to_owned(), source };
        let stream = UnixStream::connect(socket).await.map_err(unreachable)?;
        let mut stream = Some(stream);
        let connector = tower::service_fn(move |_: Uri| {
            // One connection is all this needs; a second would be after the first broke, and then the call fails.
            let stream = stream.take().ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionReset));
            std::future::ready(stream.map(TokioIo::new))
        });
        let transport = |source| AskError::Transport { socket: socket.to_owned(), source };
        let endpoint = Endpoint::from_static("http://agent").timeout(DEADLINE);
        let connected = tokio::time::timeout(DEADLINE, endpoint.connect_with_connector(connector)).await;
        let channel =
            connected.map_err(|_| AskError::Late { socket: socket.to_owned() })?.map_err(transport)?;
        let client = AdminClient::new(channel).max_decoding_message_size(ANSWER_MAX);
        Ok(Self { client, socket: socket.to_owned() })
    }

    /// Asks one question; `what` completes "the agent would not ...".
    pub(crate) async fn ask<T>(
        &mut self,
        what: &'static str,
        question: impl AsyncFnOnce(&mut AdminClient<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, AskError> {
        let socket = self.socket.clone();
        match tokio::time::timeout(DEADLINE, question(&mut self.client)).await {
            Err(_) => Err(AskError::Late { socket }),
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(match status.code() {
                Code::Unimplemented => AskError::TooOld { socket, what },
                Code::DeadlineExceeded | Code::Cancelled => AskError::Late { socket },
                _ => AskError::Refused { socket, what, message: status.message().to_owned() },
            }),
        }
    }
}
