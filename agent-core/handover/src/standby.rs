//! The standby's side: it calls, says who it is, and hears the owner.

use std::io;
use std::path::Path;
use std::sync::Arc;

use aether_domain::takeover::message::{Hello, ToOwner, ToStandby};
use aether_domain::takeover::{Attach, Event};
use aether_durable::socket;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::batches::Batches;
use crate::connection::{Connection, HearError, Reader, SayError};

/// A call that was made; it hears nothing before [`Call::follow`].
#[derive(Debug)]
pub struct Call {
    reader: Reader,
}

/// Connects and says hello; both are done at once or not at all.
pub fn call(path: &Path, hello: Hello) -> Result<(Connection, Call), CallError> {
    let stream = socket::connect(path).map_err(CallError::Connect)?;
    let stream = UnixStream::from_std(stream).map_err(CallError::Connect)?;
    let (connection, reader) = Connection::over(stream);
    connection.say(&ToOwner::Hello(hello), &[]).map_err(CallError::Say)?;
    Ok((connection, Call { reader }))
}

/// Why there is no call. Nobody there is no news: a standby calls fifty times a second.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody listens, or the queue is full.
    #[error("cannot connect to the hand-over socket")]
    Connect(#[source] io::Error),
    /// It could not be said who calls.
    #[error(transparent)]
    Say(SayError),
}

impl Call {
    /// Tells what the owner says until it ends, and that it has ended. Listeners are kept in `batches` before their greeting
    /// is told.
    pub async fn follow(mut self, attach: Attach, batches: Arc<Batches>, events: mpsc::Sender<Event>) {
        loop {
            match self.hear(&batches).await {
                Ok((message, batch)) => {
                    if events.send(Event::FromOwner { attach, message, batch }).await.is_err() {
                        return;
                    }
                }
                Err(why) => {
                    if !matches!(why, HearError::Ended) {
                        tracing::warn!(error = %why, "the owner is heard no more");
                    }
                    // The receiver is gone only when the agent ends.
                    let _ = events.send(Event::OwnerGone { attach }).await;
                    return;
                }
            }
        }
    }

    async fn hear(
        &mut self,
        batches: &Batches,
    ) -> Result<(ToStandby, Option<aether_domain::takeover::Batch>), HearError> {
        let message = self.reader.next::<ToStandby>().await?;
        let batch = match &message {
            ToStandby::Greeting(greeting) => {
                let descriptors = self.reader.descriptors(greeting.listeners.len())?;
                Some(batches.keep(&greeting.listeners, descriptors))
            }
            ToStandby::Chosen | ToStandby::NotChosen | ToStandby::Leaving | ToStandby::Yours => None,
        };
        Ok((message, batch))
    }
}
