//! The whole node, and the queue of what happens next on it.

mod agent;
mod chaos;
mod effects;
mod judge;
mod links;
mod plugin;
mod runtime;
mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use aether_domain::clock::BootId;
use aether_domain::key::Key;
use aether_domain::record::Record;
use aether_domain::tombstone::Tombstone;

use crate::fault::Fault;
use crate::kernel::{Kernel, Pid};
use crate::rng::Rng;
use agent::{Agent, Task};
use chaos::Trouble;
use links::Link;
use plugin::{Call, Turn};
use runtime::{Pod, Word};

/// Nanoseconds.
pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// When, in nanoseconds of the run.
    pub at: u64,
    /// What.
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "seed {} at {} ms: {}", self.seed, self.at / MS, self.what)
    }
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Steps that were played.
    pub steps: u64,
    /// ADDs that succeeded.
    pub added: u64,
    /// ADDs that failed within T10's exception.
    pub excused: u64,
    /// DELs.
    pub deleted: u64,
    /// DELs that left a tombstone.
    pub tombstones: u64,
    /// Times that an agent became the owner.
    pub takeovers: u64,
    /// Agents that were killed or stopped.
    pub harmed: u64,
}

impl Figures {
    /// Adds another run's.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.added += other.added;
        self.excused += other.excused;
        self.deleted += other.deleted;
        self.tombstones += other.tombstones;
        self.takeovers += other.takeovers;
        self.harmed += other.harmed;
    }
}

/// Whether lines are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trace {
    Off,
    On,
}

/// Something that will happen.
#[derive(Debug, Clone)]
enum Next {
    /// A step inside a process: it waits while that is stopped and is lost when it dies.
    Agent(Pid, Task),
    /// The kernel takes a dead process apart.
    Teardown(Pid, Part),
    /// A plugin goes on with a call.
    Plugin(usize, Turn),
    /// The runtime goes on with a pod.
    Runtime(usize),
    /// Trouble.
    Trouble(Trouble),
}

/// What a dying process leaves, in whatever order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Locks,
    Listeners,
    Connections,
}

/// Ordered by time, then by when it was put there.
#[derive(Debug)]
struct Due(u64, u64, Next);

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Due {}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// What is on the disk, and synced.
#[derive(Debug, Default)]
struct Disk {
    records: BTreeMap<Key, Record>,
    tombstones: BTreeMap<String, Tombstone>,
}

pub(crate) struct World {
    seed: u64,
    fault: Option<Fault>,
    now: u64,
    order: u64,
    rng: Rng,
    queue: BinaryHeap<Reverse<Due>>,
    kernel: Kernel,
    disk: Disk,
    agents: BTreeMap<Pid, Agent>,
    links: BTreeMap<u64, Link>,
    calls: Vec<Call>,
    pods: Vec<Pod>,
    words: BTreeMap<Key, Word>,
    boot: BootId,
    plan: chaos::Plan,
    figures: Figures,
    violation: Option<Violation>,
    trace: Trace,
    lines: Vec<String>,
    numbers: u64,
}

impl World {
    pub(crate) fn new(seed: u64, fault: Option<Fault>, trace: Trace) -> Self {
        let mut rng = Rng::new(seed);
        let plan = chaos::Plan::new(&mut rng);
        let mut world = Self {
            seed,
            fault,
            now: S,
            order: 0,
            rng,
            queue: BinaryHeap::new(),
            kernel: Kernel::default(),
            disk: Disk::default(),
            agents: BTreeMap::new(),
            links: BTreeMap::new(),
            calls: Vec::new(),
            pods: Vec::new(),
            words: BTreeMap::new(),
            boot: BootId::new("boot"),
            plan,
            figures: Figures::default(),
            violation: None,
            trace,
            lines: Vec::new(),
            numbers: 0,
        };
        world.set_out();
        world
    }

    /// Plays to the end, or to the first violation.
    pub(crate) fn play(&mut self) -> Result<Figures, Violation> {
        const STEPS_MAX: u64 = 2_000_000;
        while self.violation.is_none() && !self.is_over() {
            let Some(Reverse(Due(at, _, next))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.figures.steps += 1;
            if self.figures.steps > STEPS_MAX {
                self.fail("the run does not end: somebody is busy for nothing");
            }
            self.happen(next);
        }
        if self.violation.is_none() {
            self.judge();
        }
        match self.violation.take() {
            Some(violation) => Err(violation),
            None => Ok(self.figures),
        }
    }

    fn happen(&mut self, next: Next) {
        match next {
            Next::Agent(pid, task) => self.agent_task(pid, task),
            Next::Teardown(pid, part) => self.teardown(pid, part),
            Next::Plugin(call, turn) => self.plugin(call, turn),
            Next::Runtime(pod) => self.runtime(pod),
            Next::Trouble(trouble) => self.trouble(trouble),
        }
    }

    fn put(&mut self, at: u64, next: Next) {
        self.order += 1;
        self.queue.push(Reverse(Due(at, self.order, next)));
    }

    /// Lets something happen between `low` and `high` from now.
    fn later(&mut self, low: u64, high: u64, next: Next) {
        let at = self.now + self.rng.range(low, high);
        self.put(at, next);
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn fail(&mut self, what: &str) {
        self.say(|| format!("VIOLATION {what}"));
        if self.violation.is_none() {
            self.violation = Some(Violation { seed: self.seed, at: self.now, what: what.to_owned() });
        }
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if self.trace == Trace::On {
            self.lines.push(format!("{:>12} {}", self.now / US, line()));
        }
    }

    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}
