//! Processes that run an agent: its event loop, its life and death, the lock.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use aether_domain::pods::Presence;
use aether_domain::takeover::invariants::Watch;
use aether_domain::takeover::{
    Attach, Batch, Config, Effect, Event, Gate, GateRule, GateState, Machine, Moment, Patience, Phase,
    Readiness, Round, Socket,
};
use aether_domain::tombstone::Tombstone;

use super::chaos::Trouble;
use super::store::Store;
use super::{MS, Next, Part, S, US, World};
use crate::fault::Fault;
use crate::kernel::{LockFile, Pid, Sock, Waiting};

/// What runs in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// This code.
    Modern,
    /// An agent without the hand-over, which takes the lock.
    Plain,
    /// An agent older than the lock too.
    Lockless,
}

/// Whether the process runs.
#[derive(Debug, Clone)]
pub(super) enum Life {
    Running,
    /// Stopped, with the steps that wait until it goes on.
    Stopped(Vec<Task>),
    Dead,
}

/// A step inside a process.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// The event loop does one effect or hears one event.
    Step,
    /// An event arrives in the event loop's inbox.
    Hear(Event),
    /// The machine wanted to be woken then.
    Tick(u64),
    /// Look into the queues of the listeners.
    Accept,
    /// A call or a tombstone goes on.
    Op(u64),
    /// Look for tombstones.
    WatchTombstones,
    /// A gate opens.
    Gate(Gate),
    /// A gate that was open shuts for a while: a built-in module has faulted.
    Shut(Gate),
    /// The lock of that file is granted to the thread in flock.
    Granted(LockFile),
    /// (1) of a takeover: the tombstones that are left, the record of the first still to be removed, or gone.
    Tombstones(VecDeque<(String, Tombstone)>, Half, usize),
    /// (1) the records.
    Reconcile,
    /// Bind, and rename over the path.
    Bind(Socket),
}

/// How far a tombstone is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Record,
    Tombstone,
}

#[allow(clippy::struct_excessive_bools, reason = "a process is many independent facts")]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) pod: usize,
    pub(super) kind: Kind,
    pub(super) machine: Machine,
    watch: Watch,
    pub(super) life: Life,
    inbox: VecDeque<Event>,
    effects: VecDeque<Effect>,
    stepping: bool,
    wake: Option<u64>,
    accept_due: bool,
    pub(super) lock: Option<LockFile>,
    pub(super) wants_lock: bool,
    pub(super) in_flock: bool,
    pub(super) tries: u32,
    pub(super) links: BTreeMap<Attach, u64>,
    pub(super) batches: BTreeMap<Batch, BTreeMap<Socket, Sock>>,
    pub(super) listeners: BTreeMap<Socket, Sock>,
    /// Whether CNI calls are accepted.
    pub(super) accepting: bool,
    pub(super) draining: Option<Round>,
    /// What the last look at the standby that is to take over truly found.
    pub(super) successor: Option<Presence>,
    pub(super) store: Store,
    /// Tombstones that lay there when the lock was taken.
    pub(super) due: Vec<String>,
}

impl Agent {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.life, Life::Running)
    }

    pub(super) fn is_dead(&self) -> bool {
        matches!(self.life, Life::Dead)
    }

    pub(super) fn is_ready(&self, now: u64) -> bool {
        self.machine.readiness(Moment::from_nanos(now)) == Readiness::Ready
    }

    pub(super) fn is_owner(&self) -> bool {
        matches!(self.machine.phase(), Phase::Owner(_))
    }
}

const GATES: [Gate; 2] = [Gate::RECORDS, Gate::MODULES];

impl World {
    pub(super) fn start_agent(&mut self, pod: usize, kind: Kind) -> Pid {
        let pid = Pid(u32::try_from(self.number()).unwrap_or(u32::MAX - 1));
        let name = format!("agent-{pod}/{}", pid.0);
        let rule = |gate| GateRule { gate, patience: Patience::Endless };
        let config = Config {
            name: name.clone(),
            started: self.now,
            termination_grace: Duration::from_secs(30),
            gates: GATES.map(rule).to_vec(),
            proxies: self.plan.proxies,
        };
        let agent = Agent {
            name: name.clone(),
            pod,
            kind,
            machine: Machine::new(config, Moment::from_nanos(self.now)),
            watch: Watch::new(GATES.map(|gate| gate.0)),
            life: Life::Running,
            inbox: VecDeque::new(),
            effects: VecDeque::new(),
            stepping: false,
            wake: None,
            accept_due: false,
            lock: None,
            wants_lock: false,
            in_flock: false,
            tries: 0,
            links: BTreeMap::new(),
            batches: BTreeMap::new(),
            listeners: BTreeMap::new(),
            accepting: false,
            draining: None,
            successor: None,
            store: Store::new(self.boot.clone()),
            due: Vec::new(),
        };
        self.agents.insert(pid, agent);
        self.say(|| format!("{name} starts ({kind:?})"));
        self.hear_now(pid, Event::Started);
        pid
    }

    /// An event that arrives in a moment.
    pub(super) fn hear_soon(&mut self, pid: Pid, event: Event) {
        self.later(2 * US, 100 * US, Next::Agent(pid, Task::Hear(event)));
    }

    /// An event in the inbox.
    pub(super) fn hear_now(&mut self, pid: Pid, event: Event) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        agent.inbox.push_back(event);
        self.step_soon(pid);
    }

    fn step_soon(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let idle = agent.inbox.is_empty() && agent.effects.is_empty();
        if agent.stepping || idle {
            return;
        }
        agent.stepping = true;
        // Now and then the process does not get its turn at once.
        let high = if self.rng.chance(2) { 5 * MS } else { 40 * US };
        self.later(US, high, Next::Agent(pid, Task::Step));
    }

    pub(super) fn agent_task(&mut self, pid: Pid, task: Task) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        match &mut agent.life {
            Life::Dead => return,
            Life::Stopped(waiting) => {
                waiting.push(task);
                return;
            }
            Life::Running => {}
        }
        if self.armed(pid) {
            // Killed or stopped right before this step; a stopped one does it later.
            self.agent_task(pid, task);
            return;
        }
        match task {
            Task::Step => self.step(pid),
            Task::Hear(event) => self.hear(pid, event),
            Task::Tick(at) => {
                if let Some(agent) = self.agents.get_mut(&pid)
                    && agent.wake == Some(at)
                {
                    agent.wake = None;
                    self.hear_now(pid, Event::Tick);
                }
            }
            Task::Accept => self.accept(pid),
            Task::Op(op) => self.op(pid, op),
            Task::WatchTombstones => self.watch_tombstones(pid),
            Task::Gate(gate) => self.gate(pid, gate),
            Task::Shut(gate) => {
                self.hear_now(pid, Event::Gate { gate, state: GateState::Shut });
                self.later(MS, 3 * S, Next::Agent(pid, Task::Gate(gate)));
            }
            Task::Granted(file) => self.granted(pid, file),
            Task::Tombstones(left, half, applied) => self.apply_tombstones(pid, left, half, applied),
            Task::Reconcile => self.reconcile(pid),
            Task::Bind(socket) => self.bind(pid, socket),
        }
    }

    fn hear(&mut self, pid: Pid, event: Event) {
        if self.is(Fault::NoTakeBack) && matches!(event, Event::StandbyGone { .. }) {
            return;
        }
        if let Event::OwnerGone { .. } = event
            && let Some(agent) = self.agents.get_mut(&pid)
        {
            agent.tries = 0;
        }
        self.hear_now(pid, event);
    }

    /// One turn of the event loop: an effect of the last event, or the next event.
    fn step(&mut self, pid: Pid) {
        let now = Moment::from_nanos(self.now);
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        agent.stepping = false;
        if let Some(effect) = agent.effects.pop_front() {
            self.effect(pid, effect);
            self.step_soon(pid);
            return;
        }
        let Some(event) = agent.inbox.pop_front() else { return };
        if event == Event::LockTaken {
            agent.due = self.disk.tombstones.keys().cloned().collect();
        }
        let was_owner = agent.is_owner();
        let effects = agent.machine.handle(now, event.clone());
        let broken = agent.watch.see(&event, &effects, &agent.machine).err();
        let line = (self.trace == super::Trace::On)
            .then(|| format!("{} [{}] {event:?} -> {effects:?}", agent.name, agent.machine.phase().name()));
        agent.effects.extend(effects);
        let became_owner = !was_owner && agent.is_owner();
        let wake = agent.machine.wake_at().map(Moment::nanos);
        if let Some(at) = wake
            && agent.wake.is_none_or(|scheduled| at < scheduled)
        {
            agent.wake = Some(at);
            self.put(at.max(self.now + US), Next::Agent(pid, Task::Tick(at)));
        }
        self.figures.takeovers += u64::from(became_owner);
        if let Some(line) = line {
            self.say(|| line);
        }
        if let Some(broken) = broken {
            self.fail(&broken.to_string());
        }
        self.step_soon(pid);
    }

    /// Whoever accepts on a queue in which something waits looks into it.
    pub(super) fn wake_acceptor(&mut self, pid: Pid) {
        if let Some(agent) = self.agents.get_mut(&pid)
            && !agent.accept_due
            && !agent.is_dead()
        {
            agent.accept_due = true;
            self.later(5 * US, 300 * US, Next::Agent(pid, Task::Accept));
        }
    }

    fn accept(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        agent.accept_due = false;
        let accepting = agent.accepting;
        for (socket, sock) in agent.listeners.clone() {
            if socket == Socket::Cni && !accepting {
                continue;
            }
            let queue =
                self.kernel.sockets.get_mut(&sock).map(|listening| std::mem::take(&mut listening.queue));
            for waiting in queue.unwrap_or_default() {
                match waiting {
                    Waiting::Call(call, serial) => self.accept_call(pid, call, serial),
                    Waiting::Link(id) => self.link_accepted(pid, id),
                }
            }
        }
    }

    fn gate(&mut self, pid: Pid, gate: Gate) {
        let records: Vec<_> = self.disk.records.values().cloned().collect();
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        if gate == Gate::RECORDS && !agent.is_owner() && matches!(agent.machine.phase(), Phase::Standby(_)) {
            // As a standby reads them: they age until the takeover's reconcile.
            agent.store.table.load(records);
        }
        self.hear_now(pid, Event::Gate { gate, state: GateState::Open });
        if gate == Gate::MODULES && self.rng.chance(25) {
            self.later(MS, 3 * S, Next::Agent(pid, Task::Shut(gate)));
        }
    }

    // ---- the lock ----

    pub(super) fn try_lock(&mut self, pid: Pid) -> bool {
        let file = self.kernel.open_lock();
        let taken = self.kernel.take_lock(file, pid);
        if taken && let Some(agent) = self.agents.get_mut(&pid) {
            agent.lock = Some(file);
        }
        taken
    }

    pub(super) fn wait_lock(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        agent.wants_lock = true;
        if !std::mem::replace(&mut agent.in_flock, true) {
            let file = self.kernel.open_lock();
            self.kernel.waiters.push_back((pid, file));
            self.lock_freed();
        }
    }

    /// A lock may be free: the first running process in flock gets it.
    pub(super) fn lock_freed(&mut self) {
        let waiters: Vec<_> = self.kernel.waiters.iter().copied().collect();
        for (pid, file) in waiters {
            let running = self.agents.get(&pid).is_some_and(Agent::is_running);
            if running && self.kernel.take_lock(file, pid) {
                self.kernel.waiters.retain(|(waiter, _)| *waiter != pid);
                self.later(US, 200 * US, Next::Agent(pid, Task::Granted(file)));
            }
        }
    }

    fn granted(&mut self, pid: Pid, file: LockFile) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        agent.in_flock = false;
        if !agent.wants_lock {
            self.kernel.locks.insert(file, None);
            self.lock_freed();
        } else if self.kernel.lock_path == Some(file) {
            agent.lock = Some(file);
            self.hear_now(pid, Event::LockTaken);
        } else {
            // A lock on a file that is gone is no lock: open and lock again.
            self.kernel.locks.insert(file, None);
            self.lock_freed();
            self.wait_lock(pid);
        }
    }

    // ---- life and death ----

    pub(super) fn die(&mut self, pid: Pid, how: &str) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        if agent.is_dead() {
            return;
        }
        agent.life = Life::Dead;
        agent.accepting = false;
        let (name, pod) = (agent.name.clone(), agent.pod);
        self.say(|| format!("{name} {how}"));
        let high = if self.rng.chance(10) { 100 * MS } else { 2 * MS };
        for part in [Part::Locks, Part::Listeners, Part::Connections] {
            self.later(US, high, Next::Teardown(pid, part));
        }
        let restart = if self.rng.chance(30) { 20 * MS } else { self.plan.restart };
        self.later(MS, restart, Next::Trouble(Trouble::Restart(pod)));
    }

    pub(super) fn teardown(&mut self, pid: Pid, part: Part) {
        match part {
            Part::Locks => {
                self.kernel.release_locks(pid);
                self.lock_freed();
            }
            Part::Listeners => {
                let reset = self.kernel.close_all(pid);
                self.reset(reset);
            }
            Part::Connections => {
                self.hang_up(pid);
                self.reset_calls_of(pid);
            }
        }
    }

    /// What waited in a queue whose last holder is gone.
    pub(super) fn reset(&mut self, queue: VecDeque<Waiting>) {
        for waiting in queue {
            match waiting {
                Waiting::Call(call, serial) => self.reset_call(call, serial),
                Waiting::Link(id) => self.owner_closes(id),
            }
        }
    }

    pub(super) fn close_socket(&mut self, pid: Pid, sock: Sock) {
        let reset = self.kernel.close(sock, pid);
        self.reset(reset);
    }

    pub(super) fn stop(&mut self, pid: Pid) {
        if let Some(agent) = self.agents.get_mut(&pid)
            && agent.is_running()
        {
            agent.life = Life::Stopped(Vec::new());
            let name = agent.name.clone();
            self.say(|| format!("{name} is stopped"));
        }
    }

    pub(super) fn go_on(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let Life::Stopped(waiting) = &mut agent.life else { return };
        let waiting = std::mem::take(waiting);
        agent.life = Life::Running;
        let name = agent.name.clone();
        self.say(|| format!("{name} goes on"));
        let mut at = self.now;
        for task in waiting {
            at += US;
            self.put(at, Next::Agent(pid, task));
        }
        self.lock_freed();
    }
}
