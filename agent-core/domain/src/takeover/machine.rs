//! The machine: one event in, effects out.

use std::time::Duration;

use super::Socket;
use super::effect::{Effect, Reason};
use super::event::Event;
use super::gates::{Gate, GateRule, GateState, Gates, Part, Readiness};
use super::message::{Hello, NAME_MAX, OLDEST, Role, VERSION};
use super::moment::{Attach, Look, Moment, Round};
use super::note::Note;
use super::phase::{Came, Link, LockTry, Phase, Stage, Standby, Told};
use super::report::{Report, Step};
use crate::limits::LOCK_RETRY;

/// What an agent is told once.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its name: the pod's. It is cut to what a message may hold.
    pub name: String,
    /// When it started, in nanoseconds of `CLOCK_BOOTTIME`.
    pub started: u64,
    /// The grace between SIGTERM and SIGKILL (T12).
    pub termination_grace: Duration,
    /// The gates of readiness (T04).
    pub gates: Vec<GateRule>,
    /// Whether there is a proxy to serve.
    pub proxies: Proxies,
}

/// Whether `xds.sock` is served (T05, step 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxies {
    /// This agent configures no proxy.
    None,
    /// It serves them on `xds.sock`.
    Served,
}

/// One agent's life.
#[derive(Debug, Clone)]
pub struct Machine {
    pub(super) config: Config,
    pub(super) gates: Gates,
    pub(super) phase: Phase,
    pub(super) report: Report,
    pub(super) now: Moment,
    numbers: u64,
    out: Vec<Effect>,
}

impl Machine {
    /// An agent that begins at `now`.
    pub fn new(mut config: Config, now: Moment) -> Self {
        while config.name.len() > NAME_MAX {
            config.name.pop();
        }
        let gates = Gates::new(&config.gates, now);
        Self { config, gates, phase: Phase::New, report: Report::default(), now, numbers: 0, out: Vec::new() }
    }

    /// Takes an event that came at `now` and says what is to be done, in that order.
    pub fn handle(&mut self, now: Moment, event: Event) -> Vec<Effect> {
        // A clock that went back would only make waits longer; the machine never does.
        self.now = self.now.max(now);
        self.take(event);
        self.pass_time();
        std::mem::take(&mut self.out)
    }

    /// When the machine wants to hear a [`Event::Tick`], unless something else comes first.
    pub fn wake_at(&self) -> Option<Moment> {
        match &self.phase {
            Phase::New | Phase::Starting | Phase::Ended => None,
            Phase::Standby(standby) => {
                let link = match standby.link {
                    Link::Apart { again } => Some(again),
                    Link::Calling { until, .. } => Some(until),
                    Link::Greeted { .. } => None,
                };
                let lock = match standby.lock {
                    LockTry::Polling { next } => Some(next),
                    LockTry::Waiting | LockTry::Resting => None,
                };
                [link, lock, self.gates.wake_at(self.now)].into_iter().flatten().min()
            }
            Phase::Taking(taking) => match taking.stage {
                Stage::Foreign { again } | Stage::Failed { again } | Stage::Yielding { again, .. } => {
                    Some(again)
                }
                Stage::Calling { until, .. } => Some(until),
                Stage::Opening { again, .. } => again,
                Stage::Looking { .. } | Stage::Tombstones | Stage::Reconciling | Stage::Placing { .. } => {
                    None
                }
            },
            Phase::Owner(owner) => owner.wake_at(),
        }
    }

    /// Its name among the node's agents.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Where the agent stands.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The steps of the last takeover, as far as they are done.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whether the agent is ready at `now`, and what is missing (T04).
    pub fn readiness(&self, now: Moment) -> Readiness {
        const SERVING: &str = "cni-socket";
        let missing = match &self.phase {
            Phase::New | Phase::Starting => vec!["lock"],
            Phase::Standby(_) => self.gates.missing(Part::Standby, now),
            // Somebody else serves: this is a standby in all but the lock, and only Ready moves a roll on. And an heir's few
            // milliseconds are not worth a flap of what was Ready before.
            Phase::Taking(taking) if taking.waited.is_some() => self.gates.missing(Part::Standby, now),
            Phase::Taking(taking) if taking.failed.is_none() && taking.came == Came::Heir => {
                self.gates.missing(Part::Standby, now)
            }
            Phase::Taking(_) => {
                let mut missing = self.gates.missing(Part::Lone, now);
                missing.push(SERVING);
                missing
            }
            Phase::Owner(owner) => {
                let mut missing = self.gates.missing(Part::Lone, now);
                if owner.leaving.drain().is_some() {
                    missing.push("draining");
                }
                if owner.lost.contains(&Socket::Cni) {
                    missing.push(SERVING);
                }
                missing
            }
            Phase::Ended => vec!["ended"],
        };
        if missing.is_empty() { Readiness::Ready } else { Readiness::Missing(missing) }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Started => self.start(),
            Event::Tick => {}
            Event::Terminate => self.terminate(),
            Event::Gate { gate, state } => self.gate(gate, state),
            Event::LockHeld => self.lock_held(),
            Event::LockTaken => self.lock_taken(),
            Event::AttachFailed { attach } => self.attach_failed(attach),
            Event::FromOwner { attach, message, batch } => self.hear_owner(attach, message, batch),
            Event::OwnerGone { attach } => self.owner_gone(attach),
            Event::Seen { look, sight } => self.seen(look, &sight),
            Event::TombstonesApplied { applied } => self.tombstones_applied(applied),
            Event::Reconciled { changes } => self.reconciled(changes),
            Event::Serving { socket, identity } => self.serving(socket, identity),
            Event::StepFailed { step } => self.step_failed(step),
            Event::OpenFailed { socket } => self.open_failed(socket),
            Event::CertificatesReady => self.certificates_ready(),
            Event::ModulesEnabled => self.modules_enabled(),
            Event::FromStandby { peer, message } => self.hear_standby(peer, message),
            Event::StandbyGone { peer } => self.standby_gone(peer),
            Event::PeerSeen { peer, round, presence } => self.peer_seen(peer, round, presence),
            Event::Drained { round } => self.drained(round),
            Event::Flushed { round } => self.flushed(round),
        }
    }

    /// Does what is due.
    fn pass_time(&mut self) {
        match &self.phase {
            Phase::New | Phase::Starting | Phase::Ended => {}
            Phase::Standby(_) => self.standby_time(),
            Phase::Taking(_) => self.taking_time(),
            Phase::Owner(_) => self.owner_time(),
        }
    }

    fn start(&mut self) {
        if self.phase == Phase::New {
            self.phase = Phase::Starting;
            self.put(Effect::Build);
            self.put(Effect::TryLock);
        }
    }

    fn lock_held(&mut self) {
        if self.phase == Phase::Starting {
            self.note(Note::StandsBy);
            self.phase = Phase::Standby(Standby {
                link: Link::Apart { again: self.now },
                lock: LockTry::Polling { next: self.now.after(LOCK_RETRY) },
                held: None,
                told: Told::Incomplete,
                since: self.now,
                yours: false,
            });
        }
    }

    fn gate(&mut self, gate: Gate, state: GateState) {
        self.gates.set(gate, state);
    }

    /// SIGTERM. Whoever does not serve has nothing to finish and ends at once.
    fn terminate(&mut self) {
        match &self.phase {
            Phase::Owner(_) => self.owner_terminate(),
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Taking(_) => {
                self.exit(Reason::Terminated);
            }
            Phase::Ended => {}
        }
    }

    pub(super) fn exit(&mut self, reason: Reason) {
        self.phase = Phase::Ended;
        self.put(Effect::Exit { reason });
    }

    pub(super) fn put(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    pub(super) fn note(&mut self, note: Note) {
        self.out.push(Effect::Note(note));
    }

    pub(super) fn done(&mut self, step: Step, since: Moment) {
        let took = self.now.since(since);
        self.report.steps.push((step, took));
        // What is tried again each second is not told each second.
        let again = matches!(&self.phase, Phase::Taking(taking) if taking.failed.is_some());
        if !again || step >= Step::Serve {
            self.note(Note::Done { step, took });
        }
    }

    pub(super) fn hello(&self, role: Role) -> Hello {
        Hello {
            version: VERSION,
            oldest: OLDEST,
            name: self.config.name.clone(),
            started: self.config.started,
            role,
        }
    }

    pub(super) fn attach(&mut self) -> Attach {
        Attach(self.number())
    }

    pub(super) fn look(&mut self) -> Look {
        let look = Look(self.number());
        self.put(Effect::Look { look });
        look
    }

    pub(super) fn round(&mut self) -> Round {
        Round(self.number())
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}

#[cfg(test)]
mod tests;
