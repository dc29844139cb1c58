//! What disturbs the node: rolls, kills, stops, strangers, a removed lock file, an agent of the past.

use aether_domain::takeover::{Event, Proxies, Socket};

use super::agent::{Agent, Kind};
use super::{MS, Next, S, US, World};
use crate::kernel::{Node, Pid, STRANGER};
use crate::rng::Rng;

/// What a seed has in store.
#[allow(clippy::struct_excessive_bools, reason = "troubles come independently of each other")]
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// From then on nothing disturbs any more.
    pub(super) calm: u64,
    /// Whether anything but rolls happens.
    pub(super) harmful: bool,
    /// Whether steps fail now and then.
    pub(super) rough: bool,
    /// Whether processes are stopped.
    stops: bool,
    kills: bool,
    strangers: bool,
    /// Whether the lock file is removed by hand.
    removes_lock: bool,
    pub(super) lock_removed: bool,
    /// When a stranger last took a path.
    pub(super) path_taken: u64,
    /// The longest time until a container is started again.
    pub(super) restart: u64,
    pub(super) stopped: bool,
    first: Kind,
    pub(super) proxies: Proxies,
    /// A blow that falls so many steps of an agent from now.
    blow: Option<(Blow, Pid, u64)>,
    agents: Vec<AgentPod>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Kill,
    Stop,
}

/// What the kubelet shows of a new pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// What its probe says.
    Truth,
    /// Ready, whatever the probe says.
    Ready,
}

/// A pod of the daemon set.
#[derive(Debug, Clone)]
struct AgentPod {
    pid: Pid,
    deleted: bool,
}

/// Something that goes wrong, or is done to the agents.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trouble {
    /// A new agent is started beside the old one, which gets SIGTERM when the new one is Ready.
    Roll,
    /// Looks whether the new one is Ready.
    RollOn {
        old: usize,
        new: usize,
        shown: Shown,
    },
    /// The kubelet starts a container again.
    Restart(usize),
    /// The grace is over.
    Grace(Pid),
    /// One agent is killed or stopped, now or some steps from now.
    Harm,
    GoOn(Pid),
    /// The owner is stopped for longer than an ADD and its DEL wait, and killed then.
    LongStop,
    /// A third agent.
    Another,
    /// A socket's path is replaced or removed.
    Path,
    /// The stranger ends.
    StrangerEnds(crate::kernel::Sock),
    /// The lock file is removed.
    RemoveLock,
    /// Nothing more.
    Calm,
}

impl Plan {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let harmful = !rng.chance(20);
        let first = match rng.range(0, 20) {
            0 => Kind::Plain,
            1 => Kind::Lockless,
            _ => Kind::Modern,
        };
        Self {
            calm: 10 * S,
            harmful,
            rough: harmful && rng.chance(30),
            stops: harmful && rng.chance(50),
            kills: harmful && rng.chance(75),
            // An agent without lock and hand-over whose path is taken cannot be seen by anybody.
            strangers: harmful && first == Kind::Modern && rng.chance(20),
            removes_lock: harmful && rng.chance(15),
            path_taken: 0,
            restart: if rng.chance(15) { 12 * S } else { 800 * MS },
            lock_removed: false,
            stopped: false,
            first: if harmful { first } else { Kind::Modern },
            proxies: if rng.chance(50) { Proxies::Served } else { Proxies::None },
            blow: None,
            agents: Vec::new(),
        }
    }
}

impl World {
    pub(super) fn set_out(&mut self) {
        self.start_pod(self.plan.first);
        for _ in 0..self.rng.range(2, 5) {
            let pod = self.pods.len();
            self.pods.push(super::Pod::default());
            self.later(MS, 500 * MS, Next::Runtime(pod));
        }
        let rolls = self.rng.range(1, 4);
        for _ in 0..rolls {
            self.some_time(Trouble::Roll);
        }
        let plan = self.plan.clone();
        if plan.kills || plan.stops {
            for _ in 0..self.rng.range(1, 5) {
                self.some_time(Trouble::Harm);
            }
        }
        if plan.stops && plan.kills && self.rng.chance(15) {
            self.later(1_500 * MS, 3 * S, Next::Trouble(Trouble::LongStop));
        }
        if plan.harmful && self.rng.chance(40) {
            self.some_time(Trouble::Another);
        }
        if plan.strangers {
            for _ in 0..self.rng.range(1, 3) {
                self.some_time(Trouble::Path);
            }
        }
        // Both hands at once can hide an owner from everybody.
        if plan.removes_lock && !plan.strangers {
            self.some_time(Trouble::RemoveLock);
        }
        self.put(plan.calm, Next::Trouble(Trouble::Calm));
    }

    fn some_time(&mut self, trouble: Trouble) {
        self.later(100 * MS, 5 * S, Next::Trouble(trouble));
    }

    fn start_pod(&mut self, kind: Kind) -> usize {
        let pod = self.plan.agents.len();
        self.plan.agents.push(AgentPod { pid: Pid(0), deleted: false });
        let pid = self.start_agent(pod, kind);
        if let Some(agent) = self.plan.agents.get_mut(pod) {
            agent.pid = pid;
        }
        pod
    }

    /// Agents that live, stopped or not.
    pub(super) fn alive(&self) -> Vec<Pid> {
        self.agents.iter().filter(|(_, agent)| !agent.is_dead()).map(|(pid, _)| *pid).collect()
    }

    fn any_alive(&mut self) -> Option<Pid> {
        let alive = self.alive();
        let owner = alive.iter().copied().find(|pid| self.agents.get(pid).is_some_and(Agent::is_owner));
        if owner.is_some() && self.rng.chance(40) {
            return owner;
        }
        let index = usize::try_from(self.rng.range(0, alive.len().max(1) as u64)).unwrap_or(0);
        alive.get(index).copied()
    }

    pub(super) fn trouble(&mut self, trouble: Trouble) {
        let calm = self.now >= self.plan.calm;
        match trouble {
            Trouble::Roll => self.roll(),
            Trouble::RollOn { old, new, shown } => self.roll_on(old, new, shown),
            Trouble::Restart(pod) => self.restart(pod),
            Trouble::Grace(pid) => self.die(pid, "is killed by force"),
            Trouble::Harm => self.harm(),
            Trouble::GoOn(pid) => self.go_on(pid),
            Trouble::LongStop => {
                let owner = self.agents.iter().find(|(_, agent)| agent.is_owner() && agent.is_running());
                if let Some(owner) = owner.map(|(pid, _)| *pid) {
                    self.figures.harmed += 1;
                    self.plan.stopped = true;
                    self.stop(owner);
                    self.later(5_500 * MS, 7 * S, Next::Trouble(Trouble::Grace(owner)));
                }
            }
            Trouble::Another if self.alive().len() < 3 => {
                self.start_pod(Kind::Modern);
            }
            Trouble::Path => self.disturb_path(),
            Trouble::StrangerEnds(sock) => self.close_socket(STRANGER, sock),
            Trouble::RemoveLock if !calm => {
                self.say(|| "the lock file is removed".to_owned());
                self.kernel.lock_path = None;
                self.plan.lock_removed = true;
            }
            Trouble::Another | Trouble::RemoveLock => {}
            Trouble::Calm => {
                self.plan.blow = None;
                for pid in self.alive() {
                    self.go_on(pid);
                }
            }
        }
    }

    fn roll(&mut self) {
        let standing = self.plan.agents.iter().enumerate().filter(|(_, pod)| !pod.deleted);
        let old: Vec<usize> = standing.map(|(index, _)| index).collect();
        let Some(oldest) = old.first().copied().filter(|_| self.alive().len() < 3) else { return };
        let new = self.start_pod(Kind::Modern);
        // A kubelet restart shows the new pod falsely Ready (T12).
        let falsely = self.plan.harmful && self.rng.chance(30);
        let shown = if falsely { Shown::Ready } else { Shown::Truth };
        self.later(MS, 300 * MS, Next::Trouble(Trouble::RollOn { old: oldest, new, shown }));
    }

    fn roll_on(&mut self, old: usize, new: usize, shown: Shown) {
        let pid = |pod: usize| self.plan.agents.get(pod).map(|pod| pod.pid);
        let (Some(old_pid), Some(new_pid)) = (pid(old), pid(new)) else { return };
        let deleted = self.plan.agents.get(old).is_none_or(|pod| pod.deleted);
        if deleted {
            return;
        }
        let now = self.now;
        let ready = self.agents.get(&new_pid).is_some_and(|agent| agent.is_running() && agent.is_ready(now))
            || shown == Shown::Ready;
        if !ready {
            if now < self.plan.calm {
                self.later(30 * MS, 60 * MS, Next::Trouble(Trouble::RollOn { old, new, shown }));
            }
            return;
        }
        if let Some(pod) = self.plan.agents.get_mut(old) {
            pod.deleted = true;
        }
        self.say(|| format!("SIGTERM for agent-{old}"));
        self.hear_soon(old_pid, Event::Terminate);
        self.put(now + 30 * S, Next::Trouble(Trouble::Grace(old_pid)));
        // Most of what can go wrong goes wrong right now.
        if (self.plan.kills || self.plan.stops) && self.rng.chance(60) && self.plan.blow.is_none() {
            let target = if self.rng.chance(50) { old_pid } else { new_pid };
            self.arm(target, 90);
        }
    }

    fn restart(&mut self, pod: usize) {
        let Some(known) = self.plan.agents.get(pod).cloned() else { return };
        let runs = self.agents.get(&known.pid).is_some_and(|agent| !agent.is_dead());
        let others = self.plan.agents.iter().any(|pod| !pod.deleted);
        if !known.deleted && !runs {
            // Two agents of which one knows no lock cannot be kept apart: the past is not started again.
            let pid = self.start_agent(pod, Kind::Modern);
            if let Some(agent) = self.plan.agents.get_mut(pod) {
                agent.pid = pid;
            }
        } else if !others {
            // The DaemonSet wants one.
            self.start_pod(Kind::Modern);
        }
    }

    fn harm(&mut self) {
        let Some(target) = self.any_alive().filter(|_| self.now < self.plan.calm) else { return };
        if self.rng.chance(50) && self.plan.blow.is_none() {
            self.arm(target, 60);
        } else {
            let blow = self.blow();
            self.strike(blow, target);
        }
    }

    fn blow(&mut self) -> Blow {
        match (self.plan.kills, self.plan.stops) {
            (true, true) if self.rng.chance(50) => Blow::Stop,
            (true, _) => Blow::Kill,
            (false, _) => Blow::Stop,
        }
    }

    fn arm(&mut self, target: Pid, steps: u64) {
        let blow = self.blow();
        let steps = self.rng.range(1, steps);
        self.plan.blow = Some((blow, target, steps));
    }

    /// Counts down to the blow that falls before a certain step; whether it has fallen.
    pub(super) fn armed(&mut self, pid: Pid) -> bool {
        let Some((blow, target, left)) = self.plan.blow else { return false };
        if target != pid {
            return false;
        }
        if left > 1 {
            self.plan.blow = Some((blow, target, left - 1));
            return false;
        }
        self.plan.blow = None;
        self.strike(blow, pid);
        true
    }

    fn strike(&mut self, blow: Blow, pid: Pid) {
        self.figures.harmed += 1;
        match blow {
            Blow::Kill => self.die(pid, "is killed"),
            Blow::Stop => {
                self.plan.stopped = true;
                self.stop(pid);
                // Shorter than any deadline, or longer than an ADD waits and its DEL after it.
                let (low, high) = if self.rng.chance(50) { (MS, 300 * MS) } else { (S, 8 * S) };
                let end = if self.plan.kills && self.rng.chance(50) {
                    Trouble::Grace(pid)
                } else {
                    Trouble::GoOn(pid)
                };
                self.later(low, high, Next::Trouble(end));
            }
        }
    }

    fn disturb_path(&mut self) {
        if self.now >= self.plan.calm {
            return;
        }
        let socket = if self.rng.chance(60) { Socket::Cni } else { Socket::Handover };
        self.plan.path_taken = self.now;
        self.say(|| format!("a stranger takes the path of {socket:?}"));
        match self.rng.range(0, 3) {
            0 => {
                self.kernel.paths.remove(&socket);
            }
            1 => {
                self.kernel.paths.insert(socket, Node::Plain);
            }
            _ => {
                let sock = self.kernel.bind(socket, STRANGER);
                let end = (self.now + self.rng.range(10 * US, 2 * S)).min(self.plan.calm);
                self.put(end, Next::Trouble(Trouble::StrangerEnds(sock)));
            }
        }
    }
}
