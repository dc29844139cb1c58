//! The task that looks, and what it publishes.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aether_domain::chain::State;
use aether_domain::ids::InstallId;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::events::{ArmError, Events};
use crate::look;
use crate::memory::Memory;

/// Where to look, and how often.
#[derive(Debug, Clone)]
pub struct Config {
    /// The runtime's directory of CNI configurations.
    pub conf_dir: PathBuf,
    /// The state directory, where the marker of an uninstall is.
    pub state_dir: PathBuf,
    /// How often to look without an event.
    pub poll: Duration,
    /// The shortest time from one look to the next that an event asks for.
    pub gap: Duration,
}

impl Config {
    /// The usual times (C01) for these directories.
    pub fn new(conf_dir: PathBuf, state_dir: PathBuf) -> Self {
        use aether_domain::limits::{CHAIN_EVENT_GAP, CHAIN_POLL};
        Self { conf_dir, state_dir, poll: CHAIN_POLL, gap: CHAIN_EVENT_GAP }
    }
}

/// How changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel tells of each.
    Inotify,
    /// Only by looking again and again: inotify cannot be had, or the directory is missing.
    Poll,
}

impl Mode {
    /// All names, for a metric with one series a mode.
    pub const NAMES: [&'static str; 2] = ["inotify", "poll"];

    /// The mode's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inotify => "inotify",
            Self::Poll => "poll",
        }
    }
}

/// Why the directory was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// For the first time.
    Start,
    /// The kernel told of a change.
    Event,
    /// It was time.
    Poll,
}

impl Cause {
    /// The cause's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Event => "event",
            Self::Poll => "poll",
        }
    }
}

/// Why events may have been lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// Inotify cannot be had.
    Unavailable,
    /// The kernel's queue ran over.
    Overflow,
    /// The directory is another one than the watched.
    Replaced,
}

impl Lost {
    /// The reason's stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Overflow => "overflow",
            Self::Replaced => "replaced",
        }
    }
}

/// What one look found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The chain's state.
    pub state: State,
    /// The name of the file that the runtime would load.
    pub file: Option<String>,
    /// Why this file, or why none.
    pub choice: String,
    /// The list's plugin types, in order.
    pub plugins: Vec<String>,
    /// The wanted state's install id.
    pub install_id: Option<InstallId>,
    /// How changes are noticed.
    pub mode: Mode,
    /// When, in seconds since 1970.
    pub checked_at: u64,
}

impl Observation {
    /// Before the first look.
    fn none_yet() -> Self {
        let state = State::Unknown { why: "it was not looked at yet".to_owned() };
        Self {
            state,
            file: None,
            choice: String::new(),
            plugins: Vec::new(),
            install_id: None,
            mode: Mode::Poll,
            checked_at: 0,
        }
    }
}

/// Is told of every look and loss, one by one: the published observation shows only the latest.
pub trait Reporter: Send + 'static {
    /// A look is over.
    fn looked(&self, cause: Cause, observation: &Observation);
    /// Events may have been lost.
    fn lost(&self, why: Lost);
}

/// Looks at the directory until it is told to stop.
#[derive(Debug)]
pub struct Watcher<R> {
    config: Config,
    reporter: R,
    memory: Memory,
    events: Option<Events>,
    /// Whether events are done without until the next poll: their queue ran over.
    resting: bool,
    /// Whether the last attempt to watch failed: said once, not at each poll.
    complained: bool,
    published: watch::Sender<Observation>,
}

impl<R: Reporter> Watcher<R> {
    /// A watcher and where its observations appear.
    pub fn new(config: Config, reporter: R) -> (Self, watch::Receiver<Observation>) {
        let (published, seen) = watch::channel(Observation::none_yet());
        let memory = Memory::default();
        (Self { config, reporter, memory, events: None, resting: false, complained: false, published }, seen)
    }

    /// Looks at start, on events and at each poll, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut poll = tokio::time::interval(self.config.poll);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is due at once; the look at start stands for it.
        poll.reset();
        let mut cause = Cause::Start;
        loop {
            // Watched before it is looked at: a change after the look is an event.
            self.arm();
            let began = Instant::now();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.look(cause) => {}
            }
            cause = tokio::select! {
                () = stop.cancelled() => return,
                _ = poll.tick() => Cause::Poll,
                () = self.changed() => Cause::Event,
            };
            self.resting &= cause != Cause::Poll;
            if cause == Cause::Event {
                // Many writes of one writer are one look; a writer that never ends does not keep a core busy.
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep_until(began + self.config.gap) => {}
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
            if events.is_complete() {
                tracing::info!(directory = %self.config.conf_dir.display(), "the CNI directory was replaced: watching it anew");
                self.reporter.lost(Lost::Replaced);
            }
            self.events = None;
        }
        match Events::arm(&self.config.conf_dir) {
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
                    let why = chain(&error);
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

    async fn look(&mut self, cause: Cause) {
        let config = self.config.clone();
        let memory = std::mem::take(&mut self.memory);
        let before = memory.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut memory = memory;
            let seen = look::look(&config, &mut memory);
            (seen, memory)
        })
        .await;
        let mode = match &self.events {
            Some(events) if events.is_complete() => Mode::Inotify,
            _ => Mode::Poll,
        };
        let checked_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let observation = match looked {
            Ok((seen, memory)) => {
                self.memory = memory;
                Observation {
                    state: seen.state,
                    file: seen.file,
                    choice: seen.choice,
                    plugins: seen.plugins,
                    install_id: seen.install_id,
                    mode,
                    checked_at,
                }
            }
            Err(error) => {
                self.memory = before;
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

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
