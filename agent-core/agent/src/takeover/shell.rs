//! The loop: one event at a time to the machine, its effects performed in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aether_cni_server::Server;
use aether_domain::limits::LIVENESS;
use aether_domain::takeover::{Attach, Config as MachineConfig, Event, Machine, Peer, Proxies, Reason};
use aether_handover::{Batches, Connection, Standbys};
use aether_pod_store::Store;
use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::gates;
use super::lock::{Got, NodeLock};
use super::look::Places;
use super::repeats::Repeats;
use super::sockets::Sockets;
use super::standing::{Clock, Standing, Watch};
use crate::admission::Admission;
use crate::args::Config;
use crate::node::{Node, Role};
use crate::run::{Signals, Told};
use crate::tasks::Tasks;

/// How many events may wait: far above what a few connections and jobs say at once. Whoever says more waits.
const EVENTS: usize = 256;
/// How many callers may wait to be taken in.
const CALLERS: usize = 16;

/// Why a life ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It was told to, and did.
    Stopped,
    /// The node lock's file was replaced: another agent may own the node (T01).
    LockReplaced,
    /// Something failed, or calls were left behind.
    Failed(anyhow::Error),
}

/// Everything that the effects need.
pub(crate) struct Shell {
    pub(super) config: Config,
    pub(super) node: Arc<Node>,
    pub(super) server: Server<Admission<Store>>,
    pub(super) machine: Machine,
    pub(super) lock: NodeLock,
    pub(super) places: Places,
    pub(super) sockets: Sockets,
    pub(super) batches: Arc<Batches>,
    /// The connection to the owner.
    pub(super) link: Option<(Attach, Connection)>,
    /// The standbys' connections.
    pub(super) peers: BTreeMap<Peer, Connection>,
    pub(super) standbys: Arc<Standbys>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) connected: mpsc::Sender<(Peer, Connection)>,
    /// Work that blocks or waits; what it returns is an answer to the machine.
    pub(super) jobs: JoinSet<anyhow::Result<Option<Event>>>,
    /// Ends what an owner does beside serving.
    pub(super) upkeep: CancellationToken,
    /// Ends everything that goes on for as long as the agent does.
    pub(super) life: CancellationToken,
    pub(super) troubles: Arc<Repeats>,
    /// Since when it drains.
    pub(super) draining: Option<Instant>,
    /// When it was told to stop first.
    told: Option<Instant>,
    pub(super) end: Option<End>,
    heard: mpsc::Receiver<Event>,
    callers: mpsc::Receiver<(Peer, Connection)>,
    gets: mpsc::Receiver<Got>,
    pings: mpsc::Receiver<oneshot::Sender<()>>,
    standing: watch::Sender<Standing>,
    clock: Clock,
}

/// Asks whether the loop still turns.
pub(crate) type Pings = mpsc::Sender<oneshot::Sender<()>>;

/// What the loop does next.
enum Next {
    Event(Event),
    Nothing,
    End(End),
}

/// The machine of this agent, as others see it, before there is a shell.
pub(crate) fn machine(config: &Config, started: u64) -> (watch::Sender<Standing>, Watch) {
    let clock = Clock::start();
    let machine = Machine::new(
        MachineConfig {
            name: config.pod_name.clone(),
            started,
            termination_grace: config.termination_grace,
            gates: gates::rules(),
            proxies: Proxies::None,
        },
        clock.now(),
    );
    watch::channel(Standing::new(machine, clock))
}

impl Shell {
    /// A shell around the machine that `standing` shows.
    pub(crate) fn new(
        config: Config,
        node: Arc<Node>,
        server: Server<Admission<Store>>,
        standing: watch::Sender<Standing>,
    ) -> (Self, Pings) {
        let (events, heard) = mpsc::channel(EVENTS);
        let (connected, callers) = mpsc::channel(CALLERS);
        let (ping, pings) = mpsc::channel(1);
        let (lock, gets) = NodeLock::new(config.lock());
        let (machine, clock) = standing.borrow().parts();
        let shell = Self {
            places: Places::new(&config.run_dir),
            config,
            node,
            server,
            machine,
            lock,
            sockets: Sockets::default(),
            batches: Arc::default(),
            link: None,
            peers: BTreeMap::new(),
            standbys: Arc::default(),
            events,
            connected,
            jobs: JoinSet::new(),
            upkeep: CancellationToken::new(),
            life: CancellationToken::new(),
            troubles: Arc::default(),
            draining: None,
            told: None,
            end: None,
            heard,
            callers,
            gets,
            pings,
            standing,
            clock,
        };
        (shell, ping)
    }

    /// Lives until the machine ends, a task fails, or what is in flight is given up.
    pub(crate) async fn live(&mut self, signals: &mut Signals, tasks: &mut Tasks) -> End {
        self.feed(Event::Started);
        loop {
            if let Some(end) = self.end.take() {
                return end;
            }
            match self.next(signals, tasks).await {
                Next::Event(event) => self.feed(event),
                Next::Nothing => {}
                Next::End(end) => return end,
            }
        }
    }

    /// Cancel safety: every branch is a receive, a join or a sleep; what is not taken is there at the next turn.
    async fn next(&mut self, signals: &mut Signals, tasks: &mut Tasks) -> Next {
        let wake = self.machine.wake_at().map(|moment| self.clock.instant(moment));
        let given_up = given_up(self.draining, self.told, self.config.drain);
        tokio::select! {
            biased;
            signal = signals.next() => self.told(signal),
            error = tasks.unexpected_end() => Next::End(End::Failed(error)),
            Some(done) = self.jobs.join_next() => done_with(done),
            Some(caller) = self.callers.recv() => {
                self.peers.extend([caller]);
                Next::Nothing
            }
            Some(event) = self.heard.recv() => Next::Event(event),
            Some(got) = self.gets.recv() => self.got(got),
            Some(ping) = self.pings.recv() => {
                // Whoever asked may have left.
                let _ = ping.send(());
                Next::Nothing
            }
            () = at(wake) => Next::Event(Event::Tick),
            () = at(given_up) => Next::End(End::Failed(anyhow::anyhow!(
                "CNI calls were still in flight {:?} after the agent was told to stop, and are left; their callers try again",
                self.config.drain
            ))),
        }
    }

    /// A stop that is sent again hurries nothing: what is in flight is waited for, for a time that is bounded anyway. Only a
    /// person at the keyboard may want to leave at once.
    fn told(&mut self, signal: Told) -> Next {
        let again = self.told.is_some();
        self.told.get_or_insert_with(Instant::now);
        match (again, signal) {
            (false, _) => {
                tracing::info!(signal = signal.name(), "told to stop");
                Next::Event(Event::Terminate)
            }
            (true, Told::Terminate) => {
                tracing::info!(signal = signal.name(), "told to stop again, which is under way");
                Next::Nothing
            }
            (true, Told::Interrupt) => {
                Next::End(End::Failed(anyhow::anyhow!("interrupted while it was ending: left at once")))
            }
        }
    }

    fn got(&mut self, got: Got) -> Next {
        match self.lock.take(got).context("cannot have the node lock; see --run-dir") {
            Ok(true) => Next::Event(Event::LockTaken),
            Ok(false) => Next::Nothing,
            Err(error) => Next::End(End::Failed(error)),
        }
    }

    /// Gives the machine an event and does what it says; answers that are there at once are given to it behind that.
    fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            // A caller is known before anything that it says.
            while let Ok(caller) = self.callers.try_recv() {
                self.peers.extend([caller]);
            }
            match &event {
                Event::StandbyGone { peer } => drop(self.peers.remove(peer)),
                Event::OwnerGone { attach } => drop(self.link.take_if(|(link, _)| link == attach)),
                _ => {}
            }
            let effects = self.machine.handle(self.clock.now(), event);
            self.publish();
            for effect in effects {
                events.extend(self.perform(effect));
                if self.end.is_some() {
                    return;
                }
            }
        }
    }

    fn publish(&mut self) {
        let is = Standing::new(self.machine.clone(), self.clock);
        let (role, was) = (is.role(), self.standing.send_replace(is).role());
        if role == Role::Owner && was != Role::Owner {
            self.node.became_owner();
        }
    }

    /// Ends what goes on; the order is that of the drain, which has come before.
    pub(super) fn ends(&mut self, reason: Reason) {
        self.end = Some(match reason {
            Reason::Terminated => End::Stopped,
            Reason::LockReplaced => End::LockReplaced,
        });
    }
}

fn done_with(done: Result<anyhow::Result<Option<Event>>, JoinError>) -> Next {
    match done {
        Ok(Ok(Some(event))) => Next::Event(event),
        Ok(Ok(None)) => Next::Nothing,
        Ok(Err(error)) => Next::End(End::Failed(error)),
        Err(error) => Next::End(End::Failed(anyhow::Error::new(error).context("a step broke off"))),
    }
}

/// When what is in flight is left. Counted as whoever kills the agent counts: from when it was told to stop, so that T12's
/// wait is a part of it; a drain that nobody asked for counts from its own beginning.
fn given_up(draining: Option<Instant>, told: Option<Instant>, drain: Duration) -> Option<Instant> {
    draining.map(|since| told.unwrap_or(since) + drain)
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Whether the loop turns.
pub(crate) async fn turns(pings: &Pings) -> bool {
    let asked = async {
        let (answer, answered) = oneshot::channel();
        pings.send(answer).await.ok()?;
        answered.await.ok()
    };
    matches!(tokio::time::timeout(LIVENESS, asked).await, Ok(Some(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t07_t12_calls_in_flight_are_left_before_the_kill_however_late_the_drain_began() {
        let (told, drain) = (Instant::now(), Duration::from_secs(28));
        let began = told + Duration::from_secs(15);
        assert_eq!(given_up(Some(began), Some(told), drain), Some(told + drain));
        assert_eq!(given_up(Some(began), None, drain), Some(began + drain));
        assert_eq!(given_up(None, Some(told), drain), None);
    }
}
