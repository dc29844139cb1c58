//! The takeover machine: the input is a sequence of events, answers and waits, also such as no shell would make. The named
//! invariants are judged after each.

use std::collections::BTreeMap;
use std::time::Duration;

use aether_domain::pods::Presence;
use aether_domain::takeover::invariants::Watch;
use aether_domain::takeover::message::{Greeting, Hello, Listener, Role, ToOwner, ToStandby};
use aether_domain::takeover::{
    Attach, Batch, Changes, Config, Effect, Event, Gate, GateRule, GateState, Identity, Lock, Look, Machine,
    Moment, Path, Patience, Peer, Proxies, Round, Sight, Socket, Step,
};

use crate::input::Input;

const SOCKETS: [Socket; 3] = [Socket::Cni, Socket::Handover, Socket::Xds];
const LONGEST_NAME: usize = 300;

/// One machine with its watch and a clock.
struct Rig {
    machine: Machine,
    watch: Watch,
    now: Moment,
    /// What it asked for, and was not yet answered.
    open: Vec<Effect>,
}

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let Some(mut rig) = Rig::new(&mut input) else { return };
    while rig.step(&mut input).is_some() {}
}

impl Rig {
    fn new(input: &mut Input<'_>) -> Option<Self> {
        let proxies = input.pick(&[Proxies::None, Proxies::Served])?;
        let patience = input.pick(&[
            Patience::Endless,
            Patience::Lone(Duration::from_secs(1)),
            Patience::Lenient(Duration::from_secs(1)),
        ])?;
        let grace = Duration::from_secs(input.pick(&[30, 0, 1, 60])?);
        let name = "a".repeat(if input.below(16)? == 0 { LONGEST_NAME } else { 1 });
        let now = Moment::from_nanos(1_000_000_000);
        let gates = vec![
            GateRule { gate: Gate::RECORDS, patience: Patience::Endless },
            GateRule { gate: Gate::MODULES, patience },
        ];
        let config = Config { name, started: 1, termination_grace: grace, gates, proxies };
        // A gate whose patience ends opens without an event, which the watch does not hear of.
        let watched = if patience == Patience::Endless {
            vec![Gate::RECORDS.0, Gate::MODULES.0]
        } else {
            vec![Gate::RECORDS.0]
        };
        let watch = Watch::new(watched);
        let mut rig = Self { machine: Machine::new(config, now), watch, now, open: Vec::new() };
        rig.hear(Event::Started);
        Some(rig)
    }

    fn step(&mut self, input: &mut Input<'_>) -> Option<()> {
        match input.below(8)? {
            0 | 1 => {
                let event = event(input)?;
                self.hear(event);
            }
            2 => {
                let millis = u64::from(input.byte()?).pow(2);
                self.now = self.now.after(Duration::from_millis(millis));
                self.hear(Event::Tick);
            }
            3 => self.wake(),
            _ => {
                // The choice is taken from the input also where nothing is open: the rest keeps its meaning.
                let (which, how) = (usize::from(input.byte()?), input.byte()?);
                if !self.open.is_empty() {
                    let effect = self.open.remove(which % self.open.len());
                    if let Some(event) = answer(&effect, how) {
                        self.hear(event);
                    }
                }
            }
        }
        Some(())
    }

    fn hear(&mut self, event: Event) {
        let heard = event.clone();
        let effects = self.machine.handle(self.now, event);
        if let Err(broken) = self.watch.see(&heard, &effects, &self.machine) {
            panic!("{broken}");
        }
        self.open.extend(effects.into_iter().filter(|effect| answer(effect, 0).is_some()));
        // What is asked of the machine at any time is answered.
        let _ = self.machine.readiness(self.now);
        let _ = (self.machine.phase().name(), self.machine.report());
    }

    /// Wakes the machine when it wants to be, which must not be at the same moment again.
    fn wake(&mut self) {
        let Some(wake) = self.machine.wake_at() else { return };
        self.now = self.now.max(wake);
        self.hear(Event::Tick);
        let again = self.machine.wake_at();
        assert!(
            again.is_none_or(|again| again > self.now),
            "it is woken for nothing at {:?}: {:?}",
            self.now,
            self.machine.phase()
        );
    }
}

fn path(input: &mut Input<'_>) -> Option<Path> {
    input.pick(&[Path::Ours, Path::Dead, Path::Live { pid: Some(7) }, Path::Live { pid: None }])
}

fn sight(input: &mut Input<'_>) -> Option<Sight> {
    let lock = if input.below(8)? == 0 { Lock::Replaced } else { Lock::Ours };
    let mut paths = BTreeMap::new();
    for socket in SOCKETS {
        paths.insert(socket, path(input)?);
    }
    Some(Sight { lock, paths })
}

fn greeting(of: u8) -> Greeting {
    let named = SOCKETS.into_iter().enumerate().filter(|(bit, _)| of & (1 << bit) != 0);
    let listeners =
        named.map(|(_, socket)| Listener { socket, identity: Identity { dev: 1, ino: u64::from(of >> 4) } });
    Greeting { version: u32::from(of >> 6), name: "o".to_owned(), listeners: listeners.collect() }
}

fn to_standby(input: &mut Input<'_>) -> Option<ToStandby> {
    Some(match input.below(5)? {
        0 => ToStandby::Greeting(greeting(input.byte()?)),
        1 => ToStandby::Chosen,
        2 => ToStandby::NotChosen,
        3 => ToStandby::Leaving,
        _ => ToStandby::Yours,
    })
}

fn to_owner(input: &mut Input<'_>) -> Option<ToOwner> {
    Some(match input.below(5)? {
        0 => {
            let role = input.pick(&[Role::Standby, Role::Heir])?;
            let (version, oldest) = (u32::from(input.below(4)?), u32::from(input.below(4)?));
            let started = u64::from(input.below(4)?);
            ToOwner::Hello(Hello { version, oldest, name: "p".to_owned(), started, role })
        }
        1 => ToOwner::Complete,
        2 => ToOwner::Incomplete,
        3 => ToOwner::Ready,
        _ => ToOwner::Locked,
    })
}

/// An event that nobody asked for.
fn event(input: &mut Input<'_>) -> Option<Event> {
    let kind = input.below(20)?;
    let number = |input: &mut Input<'_>| input.below(24).map(u64::from);
    let peer = |input: &mut Input<'_>| input.below(4).map(|number| Peer(u64::from(number)));
    Some(match kind {
        0 => Event::Terminate,
        1 => {
            let gate = input.pick(&[Gate::RECORDS, Gate::MODULES, Gate("unknown")])?;
            Event::Gate { gate, state: input.pick(&[GateState::Open, GateState::Shut])? }
        }
        2 => Event::LockHeld,
        3 => Event::LockTaken,
        4 => Event::AttachFailed { attach: Attach(number(input)?) },
        5 => {
            let (attach, message) = (Attach(number(input)?), to_standby(input)?);
            let batch = input.below(4)?;
            Event::FromOwner { attach, message, batch: (batch > 0).then(|| Batch(u64::from(batch))) }
        }
        6 => Event::OwnerGone { attach: Attach(number(input)?) },
        7 => Event::Seen { look: Look(number(input)?), sight: sight(input)? },
        8 => Event::TombstonesApplied { applied: usize::from(input.byte()?) },
        9 => {
            Event::Reconciled { changes: Changes { added: usize::from(input.byte()?), ..Changes::default() } }
        }
        10 => {
            let identity = Identity { dev: 1, ino: number(input)? };
            Event::Serving { socket: input.pick(&SOCKETS)?, identity }
        }
        11 => Event::StepFailed { step: input.pick(&[Step::Tombstones, Step::Reconcile])? },
        12 => Event::OpenFailed { socket: input.pick(&SOCKETS)? },
        13 => Event::CertificatesReady,
        14 => Event::ModulesEnabled,
        15 => Event::FromStandby { peer: peer(input)?, message: to_owner(input)? },
        16 => Event::StandbyGone { peer: peer(input)? },
        17 => {
            let presence = input.pick(&[Presence::Here, Presence::Gone])?;
            Event::PeerSeen { peer: peer(input)?, round: Round(number(input)?), presence }
        }
        18 => Event::Drained { round: Round(number(input)?) },
        _ => Event::Flushed { round: Round(number(input)?) },
    })
}

/// The event that answers an effect; one time in four it is the bad answer. `None`: there is nothing to answer.
fn answer(effect: &Effect, how: u8) -> Option<Event> {
    let good = how % 4 != 3;
    let ino = u64::from(how >> 4);
    Some(match effect {
        Effect::TryLock if good => Event::LockHeld,
        Effect::TryLock | Effect::WaitLock => Event::LockTaken,
        Effect::Attach { attach, .. } if good => {
            let message = ToStandby::Greeting(greeting(how >> 2 | 0x40));
            Event::FromOwner { attach: *attach, message, batch: Some(Batch(attach.0)) }
        }
        Effect::Attach { attach, .. } => Event::AttachFailed { attach: *attach },
        Effect::ToOwner { attach, .. } if good => {
            Event::FromOwner { attach: *attach, message: ToStandby::Chosen, batch: None }
        }
        Effect::ToOwner { attach, .. } => Event::OwnerGone { attach: *attach },
        Effect::Look { look } => {
            let path = |bits: u8| match bits & 3 {
                0 | 1 => Path::Dead,
                2 => Path::Ours,
                _ => Path::Live { pid: Some(7) },
            };
            let paths = SOCKETS.into_iter().zip([path(how >> 2), path(how >> 4), path(how >> 6)]);
            Event::Seen { look: *look, sight: Sight { lock: Lock::Ours, paths: paths.collect() } }
        }
        Effect::ApplyTombstones if good => Event::TombstonesApplied { applied: 1 },
        Effect::ApplyTombstones => Event::StepFailed { step: Step::Tombstones },
        Effect::Reconcile if good => Event::Reconciled { changes: Changes::default() },
        Effect::Reconcile => Event::StepFailed { step: Step::Reconcile },
        Effect::Listen { socket, .. } | Effect::Bind { socket } if good => {
            Event::Serving { socket: *socket, identity: Identity { dev: 1, ino } }
        }
        Effect::Listen { socket, .. } | Effect::Bind { socket } => Event::OpenFailed { socket: *socket },
        Effect::AwaitCertificates => Event::CertificatesReady,
        Effect::EnableModules => Event::ModulesEnabled,
        Effect::Greet { peer, .. } if good => Event::FromStandby { peer: *peer, message: ToOwner::Complete },
        Effect::ToStandby { peer, .. } if good => Event::FromStandby { peer: *peer, message: ToOwner::Ready },
        Effect::Greet { peer, .. } | Effect::ToStandby { peer, .. } => Event::StandbyGone { peer: *peer },
        Effect::Drain { round } => Event::Drained { round: *round },
        Effect::Flush { round } => Event::Flushed { round: *round },
        Effect::LookAt { peer, round } => {
            let presence = if good { Presence::Here } else { Presence::Gone };
            Event::PeerSeen { peer: *peer, round: *round, presence }
        }
        Effect::Build
        | Effect::StopWaiting
        | Effect::Detach { .. }
        | Effect::Close { .. }
        | Effect::Drop { .. }
        | Effect::TakeBack { .. }
        | Effect::Exit { .. }
        | Effect::Note(_) => return None,
    })
}
