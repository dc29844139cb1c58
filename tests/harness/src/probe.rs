//! A prober of the CNI socket: Status calls back to back, each on a connection of its own as the plugin's is, in one
//! process. What it did not get an answer to for longest is the socket's gap.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aether_api::cni::StatusRequest;
use aether_api::cni::cni_client::CniClient;
use anyhow::{Context as _, anyhow};
use tokio::net::UnixStream;

use crate::socket;

/// How long one answer is waited for: past any gap that is still one.
const ANSWER: Duration = Duration::from_secs(5);
/// How long one that is asked once may take: past any change of the owner, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause after a failed call, so that whoever is to answer has a processor to do it.
const PAUSE: Duration = Duration::from_micros(200);

/// A prober at work, on a thread of its own. Dropping it ends it.
#[derive(Debug)]
pub struct Prober {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<Answers>>>,
}

/// When a prober was answered.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    moments: Vec<Instant>,
    /// How many calls failed.
    pub failed: usize,
}

impl Prober {
    /// Begins to ask whoever listens on `socket`.
    pub fn start(socket: &Path) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, socket) = (Arc::clone(&stop), socket.to_owned());
        let thread = std::thread::Builder::new()
            .name("prober".to_owned())
            .spawn(move || probe(&told, &socket))
            .context("cannot start the prober")?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends it; what it was answered.
    pub fn stop(mut self) -> anyhow::Result<Answers> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("the prober was stopped already")?;
        thread.join().map_err(|_| anyhow!("the prober panicked"))?
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Answers {
    /// The longest time between two answers of which some lies within `from` and `to`; none without two answers.
    pub fn gap(&self, from: Instant, to: Instant) -> Option<Duration> {
        let pairs = self.moments.windows(2).filter_map(|pair| match pair {
            [before, after] if *after >= from && *before <= to => Some(after.duration_since(*before)),
            _ => None,
        });
        pairs.max()
    }

    /// How many calls were answered.
    pub fn len(&self) -> usize {
        self.moments.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }
}

/// One Status call over a connection that stands already, and over no other.
pub async fn ask_over(stream: UnixStream) -> anyhow::Result<()> {
    let mut client = CniClient::new(socket::channel_over(stream).await?);
    tokio::time::timeout(PATIENCE, client.status(StatusRequest { caller: None }))
        .await
        .context("no answer came")??;
    Ok(())
}

fn probe(stop: &AtomicBool, socket: &Path) -> anyhow::Result<Answers> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut answers = Answers::default();
        while !stop.load(Ordering::Relaxed) {
            let mut client = CniClient::new(socket::channel(socket));
            let asked = tokio::time::timeout(ANSWER, client.status(StatusRequest { caller: None })).await;
            if let Ok(Ok(_)) = asked {
                answers.moments.push(Instant::now());
            } else {
                answers.failed += 1;
                // pause: see PAUSE.
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(answers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_the_longest_pause_that_touches_the_time_asked_about() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let answers = Answers { moments: [0, 1, 5, 6, 16, 17, 117].map(at).into(), failed: 0 };
        assert_eq!(answers.gap(at(3), at(16)), Some(Duration::from_millis(10)));
        assert_eq!(answers.gap(at(0), at(1)), Some(Duration::from_millis(4)));
        assert_eq!(answers.gap(at(18), at(19)), Some(Duration::from_millis(100)));
        assert_eq!(answers.gap(at(118), at(119)), None);
    }
}
