//! Asking, within a time limit that nothing on the other side can stretch.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::Request;
use crate::http::{self, Answer, Reader, Strange};

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// The path is no socket, or nobody listens on it.
    Connect {
        /// What the path shows.
        place: Place,
        /// Why.
        source: std::io::Error,
    },
    /// The connection was not taken in time: the queue of those that wait is full.
    NotTaken,
    /// The connection broke.
    Broken(std::io::Error),
    /// The other side closed before it had answered.
    Closed {
        /// How many bytes had come.
        came: usize,
    },
    /// The answer did not come in time.
    Late {
        /// How many bytes had come.
        came: usize,
    },
    /// What came is no answer.
    Strange(Strange),
}

/// What a path shows that could not be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing is there, or nothing can be seen.
    Nothing,
    /// A socket.
    Socket,
    /// Something else.
    Other,
}

impl Place {
    fn look(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.file_type().is_socket() => Self::Socket,
            Ok(_) => Self::Other,
            Err(_) => Self::Nothing,
        }
    }
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect { place: Place::Other, .. } => f.write_str("what is there is no socket"),
            Self::Connect { place: Place::Socket, source }
                if source.kind() == ErrorKind::ConnectionRefused =>
            {
                f.write_str("nobody listens there")
            }
            Self::Connect { .. } => f.write_str("cannot connect"),
            Self::NotTaken => f.write_str("the connection is not taken: the agent's queue is full"),
            Self::Broken(_) => f.write_str("the connection broke"),
            Self::Closed { came: 0 } => f.write_str("the connection was closed without an answer"),
            Self::Closed { came } => write!(f, "the answer was cut off after {came} bytes"),
            Self::Late { came: 0 } => f.write_str("the connection is taken, and no answer comes"),
            Self::Late { came } => write!(f, "{came} bytes came, and the rest of the answer does not"),
            Self::Strange(strange) => write!(f, "{strange}"),
        }
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connect { source, .. } | Self::Broken(source) => Some(source),
            Self::NotTaken | Self::Closed { .. } | Self::Late { .. } | Self::Strange(_) => None,
        }
    }
}

/// Asks, and is back within the request's time limit.
pub fn ask(request: &Request) -> Result<Answer, AskError> {
    let deadline = Instant::now() + request.timeout;
    let mut stream = connect(&request.socket, deadline)?;
    let mut reader = Reader::default();
    match converse(request, &mut stream, &mut reader, deadline) {
        // A refusal stands, whatever becomes of the rest of its text.
        Err(AskError::Late { .. } | AskError::Closed { .. } | AskError::Broken(_)) if reader.refused() => {
            reader.no_more().ok_or(AskError::Closed { came: 0 })
        }
        answer => answer,
    }
}

/// Connects from a thread of its own: `connect` waits as long as the queue of a listener is full, and the standard library
/// has no time limit for it. A thread that still waits ends with the process. (A channel would do, for 6 KB more.)
fn connect(socket: &Path, deadline: Instant) -> Result<UnixStream, AskError> {
    let failed = |source| AskError::Connect { place: Place::look(socket), source };
    let (asker, path) = (thread::current(), socket.to_owned());
    let connected = Arc::new(OnceLock::new());
    let result = Arc::clone(&connected);
    thread::Builder::new()
        .spawn(move || {
            let _ = result.set(UnixStream::connect(path));
            // The asker is to find itself the only owner.
            drop(result);
            asker.unpark();
        })
        .map_err(failed)?;
    let mut connected = connected;
    loop {
        if let Some(result) = Arc::get_mut(&mut connected).and_then(OnceLock::take) {
            return result.map_err(failed);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::NotTaken);
        }
        thread::park_timeout(left);
    }
}

fn converse(
    request: &Request,
    stream: &mut UnixStream,
    reader: &mut Reader,
    deadline: Instant,
) -> Result<Answer, AskError> {
    let broken = |error: std::io::Error, came| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Late { came },
        _ => AskError::Broken(error),
    };
    stream.set_write_timeout(Some(left(deadline))).map_err(AskError::Broken)?;
    match stream.write_all(http::request(request.question).as_bytes()) {
        // Who closes without reading may still have answered.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        result => result.map_err(|error| broken(error, 0))?,
    }
    let mut piece = [0; 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(AskError::Late { came: reader.came() });
        }
        stream.set_read_timeout(Some(left)).map_err(AskError::Broken)?;
        let came = match stream.read(&mut piece) {
            Ok(0) => return Err(AskError::Closed { came: reader.came() }),
            Ok(came) => came,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken(error, reader.came())),
        };
        let answer = reader.take(piece.get(..came).unwrap_or_default()).map_err(AskError::Strange)?;
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
}

/// What is left; never zero, which to the standard library means no limit at all.
fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}
