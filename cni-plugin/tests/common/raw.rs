//! A listener that speaks no gRPC, or only its beginning.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The server's first frame: empty SETTINGS.
pub const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// GOAWAY that says: stream 0 was the last, no error.
pub const GOAWAY: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// `RST_STREAM` of stream 1: CANCEL.
pub const RESET: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8];
/// HEADERS of stream 1: `:status: 200`, and nothing after.
pub const HEADERS: &[u8] = &[0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
/// HEADERS of stream 1 that end it: `:status: 200` and no gRPC status.
pub const EMPTY_ANSWER: &[u8] = &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88];

/// Accepts on `socket` for as long as the test runs; each connection reads a request, writes `answer` and ends.
pub struct Raw {
    connections: Arc<AtomicUsize>,
}

impl Raw {
    pub fn start(socket: &Path, answer: Vec<u8>) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let socket = socket.to_owned();
        // It ends when the test removes or replaces the path and somebody connects, or with the test program.
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                counted.fetch_add(1, Ordering::SeqCst);
                let _ = serve(stream, &answer);
                if !socket.exists() {
                    return;
                }
            }
        });
        Self { connections }
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: UnixStream, answer: &[u8]) -> std::io::Result<()> {
    // The request has come when its HEADERS (type 1) and DATA (type 0) on stream 1 have.
    let mut seen = Vec::new();
    let mut chunk = [0u8; 4096];
    if answer.is_empty() {
        return Ok(());
    }
    while !complete(&seen) {
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            n => seen.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
    stream.write_all(answer)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    while stream.read(&mut chunk)? > 0 {}
    Ok(())
}

/// Whether a frame on stream 1 with `END_STREAM` is in `bytes`, which begin with the 24 bytes of the preface.
fn complete(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(24..).unwrap_or_default();
    while let [a, b, c, kind, flags, _, _, _, stream, ..] = *rest {
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if rest.len() < 9 + length {
            return false;
        }
        if stream == 1 && kind <= 1 && flags & 1 == 1 {
            return true;
        }
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    false
}
