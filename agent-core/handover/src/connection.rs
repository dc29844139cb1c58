//! One connection between two agents: messages out at once, messages in as they come.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use aether_domain::limits::HANDOVER_MESSAGE_MAX;
use aether_domain::takeover::codec::{self, CodecError, Decoder};
use aether_durable::descriptors;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;

/// The side of a connection that speaks, and that closes it. Clones are of the same connection.
#[derive(Debug, Clone)]
pub struct Connection {
    stream: Arc<UnixStream>,
    closed: CancellationToken,
}

/// The side that listens.
#[derive(Debug)]
pub(crate) struct Reader {
    stream: Arc<UnixStream>,
    closed: CancellationToken,
    decoder: Decoder,
    descriptors: VecDeque<OwnedFd>,
}

/// Why something was not said. The connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub enum SayError {
    /// It is no message.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The other side is gone, or does not read.
    #[error("cannot send on the hand-over connection")]
    Send(#[source] io::Error),
}

/// Why nothing more is heard.
#[derive(Debug, thiserror::Error)]
pub enum HearError {
    /// The other side has closed it, or this one has.
    #[error("the hand-over connection has ended")]
    Ended,
    /// It broke.
    #[error("cannot read from the hand-over connection")]
    Receive(#[source] io::Error),
    /// What came is no message.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A greeting names other listeners than came.
    #[error("a greeting names {named} listener(s), and {came} descriptor(s) came; closing the connection")]
    Descriptors {
        /// How many it names.
        named: usize,
        /// How many came.
        came: usize,
    },
    /// The first message did not come.
    #[error("whoever called did not say who it is within {0:?}; closing the connection")]
    Silent(std::time::Duration),
}

impl Connection {
    /// Both sides of a connection that stands.
    pub(crate) fn over(stream: UnixStream) -> (Self, Reader) {
        let (stream, closed) = (Arc::new(stream), CancellationToken::new());
        let reader = Reader {
            stream: Arc::clone(&stream),
            closed: closed.clone(),
            decoder: Decoder::default(),
            descriptors: VecDeque::new(),
        };
        (Self { stream, closed }, reader)
    }

    /// Says something, with duplicates of `listeners`. Does not wait.
    pub fn say<M: Serialize>(&self, message: &M, listeners: &[BorrowedFd<'_>]) -> Result<(), SayError> {
        let bytes = codec::encode(message)?;
        descriptors::send(self.stream.as_fd(), &bytes, listeners).map_err(SayError::Send)
    }

    /// Whether the other side has closed it, asked of the kernel at once (T07).
    pub fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || descriptors::is_closed(&*self.stream)
    }

    /// Closes it: the other side sees it at once, and nothing more is heard of it here.
    pub fn close(&self) {
        self.closed.cancel();
        descriptors::shut(&*self.stream);
    }
}

impl Reader {
    /// The next message. Cancel safe: what was read is kept.
    pub(crate) async fn next<M: DeserializeOwned>(&mut self) -> Result<M, HearError> {
        loop {
            if let Some(message) = self.decoder.take()? {
                return Ok(message);
            }
            let closed = self.closed.clone();
            closed.run_until_cancelled(self.read()).await.ok_or(HearError::Ended)??;
        }
    }

    /// The descriptors that a message names.
    pub(crate) fn descriptors(&mut self, named: usize) -> Result<Vec<OwnedFd>, HearError> {
        let came = self.descriptors.len();
        if came < named {
            return Err(HearError::Descriptors { named, came });
        }
        Ok(self.descriptors.drain(..named).collect())
    }

    async fn read(&mut self) -> Result<(), HearError> {
        let mut buffer = [0; HANDOVER_MESSAGE_MAX];
        let receive = || descriptors::receive(self.stream.as_fd(), &mut buffer);
        let got = self.stream.async_io(Interest::READABLE, receive).await.map_err(HearError::Receive)?;
        if got.bytes == 0 {
            return Err(HearError::Ended);
        }
        // The kernel gives the descriptors of one message at a time, with its first bytes. Those still here when a message
        // begins came with one that was passed over: of a type that this version does not know.
        if !got.descriptors.is_empty() && self.decoder.is_empty() {
            self.descriptors.clear();
        }
        self.decoder.push(buffer.get(..got.bytes).unwrap_or_default());
        self.descriptors.extend(got.descriptors);
        let came = self.descriptors.len();
        if came > descriptors::MAX {
            return Err(HearError::Descriptors { named: descriptors::MAX, came });
        }
        Ok(())
    }
}
