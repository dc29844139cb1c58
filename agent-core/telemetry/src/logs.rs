//! Structured logs on standard error.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line, for collectors.
    Json,
    /// Text, for eyes.
    Plain,
}

impl FromStr for Format {
    type Err = LogError;

    fn from_str(value: &str) -> Result<Self, LogError> {
        match value {
            "json" => Ok(Self::Json),
            "plain" => Ok(Self::Plain),
            other => Err(LogError::Format { value: other.to_owned() }),
        }
    }
}

/// Why logs were not set up, or their level not changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The format is none.
    #[error("log format {value:?} is unknown: say json or plain")]
    Format {
        /// As given.
        value: String,
    },
    /// The level is none.
    #[error(
        "log level {value:?} is not understood: say error, warn, info, debug or trace, or directives like \
         info,aether_pod_store=debug"
    )]
    Level {
        /// As given.
        value: String,
        /// What the parser said.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The process has a subscriber already.
    #[error("cannot set up logs: this process has a log subscriber already")]
    Taken(#[source] tracing::subscriber::SetGlobalDefaultError),
    /// The subscriber is gone.
    #[error("cannot change the log level: the log subscriber is gone")]
    Gone(#[source] reload::Error),
}

/// Changes the level of the running process.
#[derive(Debug, Clone)]
pub struct Level {
    handle: reload::Handle<EnvFilter, Registry>,
    given: Arc<Mutex<String>>,
}

/// What the libraries below the sockets say of each frame is of no use to whoever asks for `debug`. Directives that name
/// one of them come later, and so win.
const QUIET: &str = "h2=info,hyper=info,hyper_util=info,tonic=info,tower=info";

impl Level {
    /// Takes a level (`debug`) or directives (`info,aether_pod_store=debug`) into use.
    pub fn change(&self, directives: &str) -> Result<(), LogError> {
        self.handle.reload(filter(directives)?).map_err(LogError::Gone)?;
        directives.clone_into(&mut self.given.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// The directives in use, as they were given.
    pub fn current(&self) -> String {
        self.given.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends this process's logs to standard error.
pub fn init(format: Format, directives: &str) -> Result<Level, LogError> {
    let (subscriber, level) = build(format, directives, std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(LogError::Taken)?;
    Ok(level)
}

fn build<W>(
    format: Format,
    directives: &str,
    writer: W,
) -> Result<(impl tracing::Subscriber + Send + Sync + use<W>, Level), LogError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (layer, handle) = reload::Layer::new(filter(directives)?);
    // A log collector that went away must not take the agent with it: by default the library answers a failed write with
    // `eprintln!`, which panics on the same closed pipe.
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).log_internal_errors(false);
    let lines = match format {
        Format::Json => {
            lines.json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
        Format::Plain => lines.with_ansi(false).boxed(),
    };
    Ok((
        Registry::default().with(layer).with(lines),
        Level { handle, given: Arc::new(Mutex::new(directives.to_owned())) },
    ))
}

fn filter(directives: &str) -> Result<EnvFilter, LogError> {
    let refused = |source| LogError::Level { value: directives.to_owned(), source };
    EnvFilter::builder().parse(format!("{QUIET},{directives}")).map_err(refused)
}

#[cfg(test)]
mod tests;
