//! What holds of every agent whatever the order of events, each invariant by its name.
//!
//! [`Watch`] listens to one machine: to what it hears and to what it does. Property tests and the simulation run it beside
//! each machine.

use std::collections::BTreeSet;

use super::effect::Effect;
use super::event::{Event, Lock, Path, Sight};
use super::message::{Role, ToOwner, ToStandby};
use super::moment::{Attach, Look, Peer, Round};
use super::phase::{Link, LockTry, Phase};
use super::{GateState, Machine, Socket};
use crate::pods::Presence;

/// One invariant.
#[derive(Debug, Clone, Copy)]
pub struct Invariant {
    /// Its name.
    pub name: &'static str,
    /// The rules it comes from.
    pub rules: &'static str,
    /// Whether an effect keeps it, with what is known right before the effect.
    keeps: fn(&Known, &Effect) -> bool,
}

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} ({rules}) is broken by {by}")]
pub struct Broken {
    /// The invariant.
    pub name: &'static str,
    /// Its rules.
    pub rules: &'static str,
    /// What broke it.
    pub by: String,
}

/// Every invariant of one agent.
pub const ALL: [Invariant; 13] = [
    Invariant { name: "a standby only watches", rules: "T03", keeps: a_standby_only_watches },
    Invariant { name: "tombstones before reconcile", rules: "T05", keeps: tombstones_before_reconcile },
    Invariant { name: "reconcile before serving", rules: "T05", keeps: reconcile_before_serving },
    Invariant {
        name: "no foreign listener is replaced",
        rules: "T06, T08",
        keeps: no_foreign_listener_is_replaced,
    },
    Invariant {
        name: "duplicates only where the path names them",
        rules: "T13",
        keeps: duplicates_only_where_named,
    },
    Invariant { name: "modules after serving", rules: "T05, M02", keeps: modules_after_serving },
    Invariant { name: "only the chosen one waits in flock", rules: "T13", keeps: only_the_chosen_waits },
    Invariant { name: "ready only when complete", rules: "T04, T07", keeps: ready_only_when_complete },
    Invariant { name: "drain only when asked to", rules: "T01, T07", keeps: drain_only_when_asked },
    Invariant { name: "flush after drain", rules: "T07", keeps: flush_after_drain },
    Invariant { name: "the lock goes last", rules: "T07", keeps: the_lock_goes_last },
    Invariant { name: "yours after flush and look", rules: "T07", keeps: yours_after_flush_and_look },
    Invariant { name: "nothing after the end", rules: "T07", keeps: nothing_after_the_end },
];

/// What has happened to an agent.
#[allow(clippy::struct_excessive_bools, reason = "what has happened is a set of independent facts")]
#[derive(Debug, Clone, Default)]
struct Known {
    locked: bool,
    lock_lost: bool,
    tombstones: Answered,
    reconciled: Answered,
    look: Option<Look>,
    sight: Option<Sight>,
    /// The call of an heir on whoever still listens, and whether it was given up without a greeting.
    heir_call: Option<Attach>,
    silence: bool,
    opening: BTreeSet<Socket>,
    served: BTreeSet<Socket>,
    chosen: bool,
    /// Every gate of the agent, and those that are shut.
    rules: BTreeSet<&'static str>,
    gates: BTreeSet<&'static str>,
    terminated: bool,
    round: Option<Round>,
    drained: bool,
    flushed: bool,
    asked_about: Option<(Peer, Round)>,
    successor_lives: bool,
    ended: bool,
}

/// Whether a step was asked for and done. What nobody asked for is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Answered {
    #[default]
    Unasked,
    Asked,
    Done,
}

impl Answered {
    fn answer(&mut self) {
        if *self == Self::Asked {
            *self = Self::Done;
        }
    }
}

fn a_standby_only_watches(known: &Known, effect: &Effect) -> bool {
    match effect {
        Effect::ApplyTombstones
        | Effect::Reconcile
        | Effect::Listen { .. }
        | Effect::Bind { .. }
        | Effect::AwaitCertificates
        | Effect::EnableModules
        | Effect::Greet { .. }
        | Effect::ToStandby { .. }
        | Effect::Drain { .. }
        | Effect::TakeBack { .. }
        | Effect::Flush { .. }
        | Effect::LookAt { .. } => known.locked,
        Effect::Build
        | Effect::TryLock
        | Effect::WaitLock
        | Effect::StopWaiting
        | Effect::Attach { .. }
        | Effect::Detach { .. }
        | Effect::ToOwner { .. }
        | Effect::Close { .. }
        | Effect::Look { .. }
        | Effect::Drop { .. }
        | Effect::Exit { .. }
        | Effect::Note(_) => true,
    }
}

fn tombstones_before_reconcile(known: &Known, effect: &Effect) -> bool {
    *effect != Effect::Reconcile || known.tombstones == Answered::Done
}

fn reconcile_before_serving(known: &Known, effect: &Effect) -> bool {
    !matches!(effect, Effect::Listen { .. } | Effect::Bind { .. }) || known.reconciled == Answered::Done
}

fn no_foreign_listener_is_replaced(known: &Known, effect: &Effect) -> bool {
    let Effect::Bind { socket } = effect else { return true };
    let path = known.sight.as_ref().map(|sight| sight.path(*socket));
    match path {
        Some(Path::Dead | Path::Ours) => true,
        Some(Path::Live { .. }) => known.silence || *socket == Socket::Xds,
        None => false,
    }
}

fn duplicates_only_where_named(known: &Known, effect: &Effect) -> bool {
    let Effect::Listen { socket, .. } = effect else { return true };
    known.sight.as_ref().is_some_and(|sight| sight.path(*socket) == Path::Ours)
}

fn modules_after_serving(known: &Known, effect: &Effect) -> bool {
    *effect != Effect::EnableModules || known.served.contains(&Socket::Cni)
}

fn only_the_chosen_waits(known: &Known, effect: &Effect) -> bool {
    *effect != Effect::WaitLock || known.chosen
}

fn ready_only_when_complete(known: &Known, effect: &Effect) -> bool {
    match effect {
        Effect::ToOwner { message: ToOwner::Ready | ToOwner::Complete, .. } => known.gates.is_empty(),
        _ => true,
    }
}

fn drain_only_when_asked(known: &Known, effect: &Effect) -> bool {
    !matches!(effect, Effect::Drain { .. }) || known.terminated || known.lock_lost
}

fn flush_after_drain(known: &Known, effect: &Effect) -> bool {
    !matches!(effect, Effect::Flush { .. }) || known.drained
}

fn the_lock_goes_last(known: &Known, effect: &Effect) -> bool {
    // Who has not served has nothing in flight.
    !matches!(effect, Effect::Exit { .. }) || !known.served.contains(&Socket::Cni) || known.flushed
}

fn yours_after_flush_and_look(known: &Known, effect: &Effect) -> bool {
    let yours = matches!(effect, Effect::ToStandby { message: ToStandby::Yours, .. });
    !yours || known.flushed && known.successor_lives
}

fn nothing_after_the_end(known: &Known, effect: &Effect) -> bool {
    // A late standby is still turned away.
    !known.ended || matches!(effect, Effect::Drop { .. } | Effect::Close { .. })
}

/// Listens to one machine.
#[derive(Debug, Clone)]
pub struct Watch {
    known: Known,
}

impl Watch {
    /// Listens to a machine with these gates from its start.
    pub fn new(gates: impl IntoIterator<Item = &'static str>) -> Self {
        let rules: BTreeSet<_> = gates.into_iter().collect();
        Self { known: Known { gates: rules.clone(), rules, ..Known::default() } }
    }

    /// Takes one event with its effects, and the machine as it is after them.
    pub fn see(&mut self, event: &Event, effects: &[Effect], machine: &Machine) -> Result<(), Broken> {
        self.known.hear(event);
        for effect in effects {
            for invariant in ALL {
                if !(invariant.keeps)(&self.known, effect) {
                    let by = format!("{effect:?} after {event:?}");
                    return Err(Broken { name: invariant.name, rules: invariant.rules, by });
                }
            }
            self.known.after(effect);
        }
        nobody_sleeps_on_a_free_lock(event, machine)
    }
}

/// An agent that nobody has greeted goes on trying for the lock (T03, T13), and whoever waits for time says so.
fn nobody_sleeps_on_a_free_lock(event: &Event, machine: &Machine) -> Result<(), Broken> {
    let Phase::Standby(standby) = machine.phase() else { return Ok(()) };
    let greeted = matches!(standby.link, Link::Greeted { .. });
    let tries = match standby.lock {
        LockTry::Polling { .. } => machine.wake_at().is_some(),
        LockTry::Waiting => true,
        LockTry::Resting => greeted,
    };
    if tries {
        return Ok(());
    }
    let by = format!("{standby:?} after {event:?}");
    Err(Broken { name: "nobody sleeps on a free lock", rules: "T03, T13", by })
}

impl Known {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::LockTaken => self.locked = true,
            Event::Gate { gate, state: GateState::Open } => {
                self.gates.remove(gate.0);
            }
            // A gate that no rule names is none of the agent's.
            Event::Gate { gate, state: GateState::Shut } if self.rules.contains(gate.0) => {
                self.gates.insert(gate.0);
            }
            Event::Seen { look, sight } if self.look == Some(*look) => {
                self.lock_lost |= sight.lock == Lock::Replaced;
                self.sight = Some(sight.clone());
            }
            Event::TombstonesApplied { .. } => self.tombstones.answer(),
            Event::Reconciled { .. } => self.reconciled.answer(),
            Event::Serving { socket, .. } if self.opening.contains(socket) => {
                self.served.insert(*socket);
            }
            Event::FromOwner { message: ToStandby::Chosen | ToStandby::Leaving, .. } => self.chosen = true,
            Event::Terminate => self.terminated = true,
            Event::Drained { round } => self.drained = self.drained || self.round == Some(*round),
            Event::Flushed { round } => {
                self.flushed = self.drained && self.round == Some(*round) || self.flushed;
            }
            Event::PeerSeen { peer, round, presence } if self.asked_about == Some((*peer, *round)) => {
                self.successor_lives = *presence == Presence::Here;
            }
            Event::Started
            | Event::Tick
            | Event::LockHeld
            | Event::AttachFailed { .. }
            | Event::FromOwner { .. }
            | Event::OwnerGone { .. }
            | Event::Gate { .. }
            | Event::Seen { .. }
            | Event::Serving { .. }
            | Event::StepFailed { .. }
            | Event::OpenFailed { .. }
            | Event::CertificatesReady
            | Event::ModulesEnabled
            | Event::FromStandby { .. }
            | Event::PeerSeen { .. }
            | Event::StandbyGone { .. } => {}
        }
    }

    fn after(&mut self, effect: &Effect) {
        match effect {
            // The steps begin anew: what was done before counts no more.
            Effect::ApplyTombstones => {
                self.tombstones = Answered::Asked;
                self.reconciled = Answered::Unasked;
            }
            Effect::Reconcile => self.reconciled = Answered::Asked,
            Effect::Look { look } => self.look = Some(*look),
            Effect::Listen { socket, .. } | Effect::Bind { socket } => {
                self.opening.insert(*socket);
            }
            Effect::Attach { attach, hello } => {
                self.heir_call = (hello.role == Role::Heir).then_some(*attach);
                self.silence = false;
            }
            Effect::Detach { attach } => self.silence |= self.heir_call == Some(*attach),
            Effect::StopWaiting => self.chosen = false,
            Effect::Drain { round } => {
                self.round = Some(*round);
                self.drained = false;
                self.flushed = false;
            }
            Effect::TakeBack { .. } => {
                self.round = None;
                self.drained = false;
                self.flushed = false;
            }
            Effect::LookAt { peer, round } => {
                self.asked_about = Some((*peer, *round));
                self.successor_lives = false;
            }
            Effect::Exit { .. } => self.ended = true,
            Effect::Build
            | Effect::TryLock
            | Effect::WaitLock
            | Effect::ToOwner { .. }
            | Effect::Close { .. }
            | Effect::AwaitCertificates
            | Effect::EnableModules
            | Effect::Greet { .. }
            | Effect::ToStandby { .. }
            | Effect::Drop { .. }
            | Effect::Flush { .. }
            | Effect::Note(_) => {}
        }
    }
}
