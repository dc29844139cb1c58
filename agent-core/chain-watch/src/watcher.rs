//! The task that looks.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aether_domain::chain::{Healthy, State};
use aether_domain::text::error_chain;
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::binary::{Binary, Hashed};
use crate::config::Config;
use crate::events::{ArmError, Events};
use crate::look::{self, Kept};
use crate::memory::Memory;
use crate::observation::{Cause, Lost, Mode, Observation, Reporter};
use crate::pace::Pace;

/// Looks at the directory until it is told to stop.
#[derive(Debug)]
pub struct Watcher<R> {
    config: Config,
    reporter: R,
    kept: Kept,
    events: Option<Events>,
    /// Whether events are done without until the next poll: their queue ran over.
    resting: bool,
    /// Whether the last attempt to watch failed: said once, not at each poll.
    complained: bool,
    published: watch::Sender<Observation>,
    looker: Looker,
    asked: mpsc::Receiver<oneshot::Sender<()>>,
}

/// Asks the watcher to look now.
#[derive(Debug, Clone)]
pub struct Looker(mpsc::Sender<oneshot::Sender<()>>);

impl Looker {
    /// Returns when a look that began after this call is published, or when the watcher has ended. Blocks: for threads
    /// that are not the runtime's.
    pub fn look_blocking(&self) {
        let (done, seen) = oneshot::channel();
        if self.0.blocking_send(done).is_ok() {
            // An error says that the watcher has ended: then nobody looks any more.
            let _ = seen.blocking_recv();
        }
    }
}

/// How often the queue of events is emptied while it is not looked: the kernel's holds 16,384 of them, and a writer that
/// does nothing else was seen to bring some hundred in a millisecond.
const DRAIN: Duration = Duration::from_millis(20);
/// How many reads empty it: beyond that, a writer brings events as fast as they are read.
const DRAINS_MAX: usize = 8;
/// How many may wait for a look that they asked for.
const ASKERS_MAX: usize = 64;

impl<R: Reporter> Watcher<R> {
    /// A watcher and where its observations appear; `healthy` is what an earlier process observed healthy last.
    pub fn new(
        config: Config,
        reporter: R,
        healthy: Option<Healthy>,
    ) -> (Self, watch::Receiver<Observation>) {
        let (published, seen) = watch::channel(Observation::none_yet());
        let kept = Kept { memory: Memory::of(healthy), hashed: Hashed::default() };
        let (ask, asked) = mpsc::channel(ASKERS_MAX);
        let watcher = Self {
            config,
            reporter,
            kept,
            events: None,
            resting: false,
            complained: false,
            published,
            looker: Looker(ask),
            asked,
        };
        (watcher, seen)
    }

    /// Who uses it can have the watcher look at any time.
    pub fn looker(&self) -> Looker {
        self.looker.clone()
    }

    /// Looks at start, on events and at each poll, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let (_, nobody) = mpsc::channel(1);
        let mut requests = std::mem::replace(&mut self.asked, nobody);
        let mut poll = tokio::time::interval(self.config.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is due at once; the look at start stands for it.
        poll.reset();
        let mut pace = Pace::new(self.config.events, Instant::now());
        let mut cause = Cause::Start;
        let mut askers: Vec<oneshot::Sender<()>> = Vec::new();
        loop {
            // Watched before it is looked at: a change after the look is an event.
            self.arm();
            let began = Instant::now();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.look(cause) => {}
            }
            for asker in askers.drain(..) {
                // One that does not wait any more misses nothing.
                let _ = asker.send(());
            }
            cause = tokio::select! {
                () = stop.cancelled() => return,
                _ = poll.tick() => Cause::Poll,
                Some(asker) = requests.recv() => {
                    askers.push(asker);
                    Cause::Asked
                }
                () = self.changed() => Cause::Event,
            };
            while let Ok(asker) = requests.try_recv() {
                askers.push(asker);
            }
            self.resting &= cause != Cause::Poll;
            if cause == Cause::Event {
                // Many writes of one writer are one look; a writer that never ends does not keep a core busy. Who asks does
                // not wait for that.
                let at = pace.next(began, Instant::now());
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = self.rest(at) => {}
                    Some(asker) = requests.recv() => askers.push(asker),
                }
            }
        }
    }

    /// Watches the directory that is there now, unless it is watched already.
    fn arm(&mut self) {
        if self.resting {
            return;
        }
        if let Some(events) = &self.events {
            if events.stands() {
                return;
            }
            if events.is_complete() && !events.directory_stands() {
                tracing::info!(directory = %self.config.conf_dir.display(), "the CNI directory was replaced: watching it anew");
                self.reporter.lost(Lost::Replaced);
            }
            self.events = None;
        }
        match Events::arm(&self.config.conf_dir, &self.config.plugin) {
            Ok(events) => {
                self.events = Some(events);
                self.complained = false;
            }
            // The next look is by poll; it tries again.
            Err(ArmError::Moving { .. }) => self.reporter.lost(Lost::Replaced),
            Err(error @ ArmError::Unavailable { .. }) => {
                self.reporter.lost(Lost::Unavailable);
                if !self.complained {
                    self.complained = true;
                    let why = error_chain(&error);
                    tracing::warn!(every = ?self.config.poll, "{why}; polling it instead, and trying again at each poll");
                }
            }
        }
    }

    /// Waits until events ask for a look; without a source of them, for ever.
    async fn changed(&mut self) {
        let Some(events) = &mut self.events else { return std::future::pending().await };
        let heard = events.heard().await;
        let complete = events.is_complete();
        match heard {
            Ok(heard) if heard.overflow => {
                self.events = None;
                self.resting = true;
                self.reporter.lost(Lost::Overflow);
                tracing::warn!(
                    "inotify's queue ran over: the CNI directory is polled, and watched anew from the next poll on"
                );
            }
            Ok(heard) if heard.replaced => {
                self.events = None;
                // One that was only waited for has come: nothing is lost.
                if complete {
                    self.reporter.lost(Lost::Replaced);
                    tracing::info!("the CNI directory was replaced: watching it anew");
                }
            }
            Ok(_) => {}
            Err(error) => {
                self.events = None;
                self.resting = true;
                self.reporter.lost(Lost::Unavailable);
                tracing::warn!(
                    "cannot read inotify's queue: {error}; the CNI directory is polled until the next poll"
                );
            }
        }
    }

    /// Waits until then. What comes meanwhile asks for nothing more, but is taken out of the queue, which would run over.
    async fn rest(&mut self, until: Instant) {
        while Instant::now() < until {
            tokio::time::sleep_until(until.min(Instant::now() + DRAIN)).await;
            for _ in 0..DRAINS_MAX {
                if self.changed().now_or_never().is_none() {
                    break;
                }
            }
        }
    }

    async fn look(&mut self, cause: Cause) {
        let checked_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let config = self.config.clone();
        let kept = std::mem::take(&mut self.kept);
        let before = kept.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut kept = kept;
            let seen = look::look(&config, &mut kept, checked_at);
            (seen, kept)
        })
        .await;
        let mode = match &self.events {
            Some(events) if events.is_complete() => Mode::Inotify,
            _ => Mode::Poll,
        };
        let observation = match looked {
            Ok((seen, kept)) => {
                self.kept = kept;
                Observation {
                    state: seen.state,
                    file: seen.file,
                    choice: seen.choice,
                    plugins: seen.plugins,
                    files: seen.files,
                    wanted: seen.wanted,
                    healthy: seen.healthy,
                    plugin_sha256: seen.plugin_sha256,
                    binary: seen.binary,
                    install_id: seen.install_id,
                    mode,
                    checked_at,
                }
            }
            Err(error) => {
                self.kept = before;
                let state =
                    State::Unknown { why: format!("the look at the CNI directory ended early: {error}") };
                Observation { state, mode, checked_at, ..Observation::none_yet() }
            }
        };
        self.say(&observation);
        self.reporter.looked(cause, &observation);
        self.published.send_replace(observation);
    }

    fn say(&self, now: &Observation) {
        let before = self.published.borrow();
        if before.binary != now.binary
            && let Binary::Wrong { .. } | Binary::Missing = now.binary
        {
            let how = match &now.binary {
                Binary::Wrong { how } => how.clone(),
                Binary::Right | Binary::Missing | Binary::Unknown { .. } => "there is none".to_owned(),
            };
            tracing::warn!(plugin = %self.config.plugin.display(), how, "the plugin's binary is not the wanted one");
        }
        if before.state != now.state || before.file != now.file {
            tracing::info!(
                state = now.state.name(),
                before = before.state.name(),
                file = now.file.as_deref().unwrap_or(""),
                choice = now.choice,
                plugins = now.plugins.join(","),
                detail = detail(&now.state),
                "the chain's state changed"
            );
        }
        if before.checked_at != 0 && before.mode != now.mode {
            tracing::info!(mode = now.mode.name(), "changes of the CNI directory are noticed another way");
        }
    }
}

fn detail(state: &State) -> &str {
    match state {
        State::Drifted { how } => how,
        State::Invalid { why } | State::Unknown { why } => why,
        State::Chained | State::Stripped | State::NoList | State::Uninstalled => "",
    }
}
