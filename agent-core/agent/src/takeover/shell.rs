//! The loop: one event at a time to the machine, its effects performed in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

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
use crate::run::Signals;
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
        let given_up = self.draining.map(|since| since + self.config.drain);
        tokio::select! {
            biased;
            name = signals.next() => self.told(name),
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
                "CNI calls were still in flight {:?} after the drain began, and are left; their callers try again",
                self.config.drain
            ))),
        }
    }

    fn told(&self, signal: &'static str) -> Next {
        tracing::info!(signal, "told to stop");
        if self.draining.is_some() {
            let error = anyhow::anyhow!("told to stop by {signal} again while draining: left at once");
            return Next::End(End::Failed(error));
        }
        Next::Event(Event::Terminate)
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
