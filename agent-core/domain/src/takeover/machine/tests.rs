mod life;
mod properties;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::takeover::invariants::Watch;
use crate::takeover::message::{Greeting, Hello, Listener, Role, ToOwner, ToStandby};
use crate::takeover::*;

/// One machine with its watch and a clock.
struct Rig {
    machine: Machine,
    watch: Watch,
    now: Moment,
    effects: VecDeque<Effect>,
}

fn config(proxies: Proxies) -> Config {
    let endless = |gate| GateRule { gate, patience: Patience::Endless };
    Config {
        name: "a".to_owned(),
        started: 1,
        termination_grace: Duration::from_secs(30),
        gates: vec![endless(Gate::RECORDS), endless(Gate::MODULES)],
        proxies,
    }
}

impl Rig {
    fn new(proxies: Proxies) -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let machine = Machine::new(config(proxies), now);
        let watch = Watch::new([Gate::RECORDS.0, Gate::MODULES.0]);
        Self { machine, watch, now, effects: VecDeque::new() }
    }

    fn hear(&mut self, event: Event) -> &mut Self {
        let heard = event.clone();
        let effects = self.machine.handle(self.now, event);
        self.watch.see(&heard, &effects, &self.machine).unwrap();
        self.effects.extend(effects);
        self
    }

    fn wait(&mut self, wait: Duration) -> &mut Self {
        self.now = self.now.after(wait);
        self.hear(Event::Tick)
    }

    /// What it has done since the last call, without what it said.
    fn did(&mut self) -> Vec<Effect> {
        self.effects.drain(..).filter(|effect| !matches!(effect, Effect::Note(_))).collect()
    }

    fn said(&mut self) -> Vec<Note> {
        let note = |effect| match effect {
            Effect::Note(note) => Some(note),
            _ => None,
        };
        self.effects.drain(..).filter_map(note).collect()
    }

    fn pass_gates(&mut self) -> &mut Self {
        self.hear(Event::Gate { gate: Gate::RECORDS, state: GateState::Open });
        self.hear(Event::Gate { gate: Gate::MODULES, state: GateState::Open })
    }

    fn standby(&mut self) -> Attach {
        self.hear(Event::Started).hear(Event::LockHeld);
        self.calling()
    }

    /// The last call on an owner.
    fn calling(&mut self) -> Attach {
        let call = |effect: &Effect| match effect {
            Effect::Attach { attach, .. } => Some(*attach),
            _ => None,
        };
        self.did().iter().filter_map(call).next_back().expect("it calls on an owner")
    }

    fn looking(&mut self) -> Look {
        let look = |effect: &Effect| match effect {
            Effect::Look { look } => Some(*look),
            _ => None,
        };
        self.did().iter().filter_map(look).next_back().expect("it looks")
    }

    fn draining(&mut self) -> Round {
        let round = |effect: &Effect| match effect {
            Effect::Drain { round } => Some(*round),
            _ => None,
        };
        self.did().iter().filter_map(round).next_back().expect("it drains")
    }

    fn greet(&mut self, attach: Attach, batch: u64) -> &mut Self {
        let message = ToStandby::Greeting(greeting());
        self.hear(Event::FromOwner { attach, message, batch: Some(Batch(batch)) })
    }

    fn say(&mut self, attach: Attach, message: ToStandby) -> &mut Self {
        self.hear(Event::FromOwner { attach, message, batch: None })
    }

    fn see(&mut self, cni: Path, handover: Path) -> &mut Self {
        let look = self.looking();
        self.hear(Event::Seen { look, sight: sight(cni, handover) })
    }

    /// From the lock to the owner.
    fn take_over(&mut self) -> &mut Self {
        self.see(Path::Dead, Path::Dead).hear(Event::TombstonesApplied { applied: 0 });
        self.hear(Event::Reconciled { changes: Changes::default() }).see(Path::Dead, Path::Dead);
        self.serving(Socket::Cni).serving(Socket::Handover).hear(Event::ModulesEnabled)
    }

    fn serving(&mut self, socket: Socket) -> &mut Self {
        self.hear(Event::Serving { socket, identity: Identity { dev: 1, ino: 2 } })
    }

    fn owner(proxies: Proxies) -> Self {
        let mut rig = Self::new(proxies);
        rig.hear(Event::Started).hear(Event::LockTaken).take_over().pass_gates();
        rig.did();
        rig
    }

    fn peer(&mut self, peer: u64, started: u64) -> &mut Self {
        let hello = Hello { version: 1, oldest: 1, name: format!("p{peer}"), started, role: Role::Standby };
        self.from(peer, ToOwner::Hello(hello))
    }

    fn from(&mut self, peer: u64, message: ToOwner) -> &mut Self {
        self.hear(Event::FromStandby { peer: Peer(peer), message })
    }
}

fn greeting() -> Greeting {
    let listener = |socket, ino| Listener { socket, identity: Identity { dev: 1, ino } };
    let listeners = vec![listener(Socket::Cni, 7), listener(Socket::Handover, 8)];
    Greeting { version: 1, name: "o".to_owned(), listeners }
}

fn sight(cni: Path, handover: Path) -> Sight {
    Sight { lock: Lock::Ours, paths: BTreeMap::from([(Socket::Cni, cni), (Socket::Handover, handover)]) }
}

const LIVE: Path = Path::Live { pid: Some(4) };

fn to(peer: u64, message: ToStandby) -> Effect {
    Effect::ToStandby { peer: Peer(peer), message }
}
