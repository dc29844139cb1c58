//! What the shell does for each effect of the machine.

use std::collections::{BTreeMap, VecDeque};

use aether_domain::pods::Presence;
use aether_domain::takeover::message::{ToOwner, ToStandby};
use aether_domain::takeover::{
    Changes, Effect, Event, Gate, Identity, Lock, Path, Phase, Sight, Socket, Step,
};
use aether_domain::tombstone::Tombstone;

use super::agent::{Half, Kind, Task};
use super::{MS, Next, US, World};
use crate::fault::Fault;
use crate::kernel::{Node, Pid, Sock};

impl World {
    pub(super) fn effect(&mut self, pid: Pid, effect: Effect) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let kind = agent.kind;
        match effect {
            Effect::Build => {
                for gate in [Gate::RECORDS, Gate::MODULES] {
                    self.later(100 * US, 400 * MS, Next::Agent(pid, Task::Gate(gate)));
                }
            }
            Effect::TryLock => {
                let once = agent.tries > 0;
                agent.tries += 1;
                let allowed = !(once && self.fault == Some(Fault::LockTriedOnce));
                let taken = kind == Kind::Lockless || allowed && self.try_lock(pid);
                self.hear_now(pid, if taken { Event::LockTaken } else { Event::LockHeld });
            }
            Effect::WaitLock => self.wait_lock(pid),
            Effect::StopWaiting => agent.wants_lock = false,
            Effect::Attach { attach, hello } if kind == Kind::Modern => {
                self.call_owner(pid, attach, ToOwner::Hello(hello));
            }
            Effect::Attach { attach, .. } => self.hear_soon(pid, Event::AttachFailed { attach }),
            Effect::Detach { attach } => self.close_link(pid, attach),
            Effect::ToOwner { attach, message } => {
                if message == ToOwner::Complete && self.is(Fault::StandbyBindsEarly) {
                    self.bind(pid, Socket::Cni);
                }
                self.say_to_owner(pid, attach, message);
            }
            Effect::Close { batch } => {
                for sock in agent.batches.remove(&batch).unwrap_or_default().into_values() {
                    self.close_socket(pid, sock);
                }
            }
            Effect::Look { look } => {
                let sight = self.sight(pid);
                self.hear_now(pid, Event::Seen { look, sight });
            }
            Effect::ApplyTombstones => {
                if self.is(Fault::ServeBeforeReconcile) {
                    self.open(pid, Socket::Cni);
                }
                let left: VecDeque<_> = self
                    .disk
                    .tombstones
                    .iter()
                    .map(|(name, tombstone)| (name.clone(), tombstone.clone()))
                    .collect();
                self.later(10 * US, MS, Next::Agent(pid, Task::Tombstones(left, Half::Record, 0)));
            }
            Effect::Reconcile => self.later(10 * US, 2 * MS, Next::Agent(pid, Task::Reconcile)),
            Effect::Listen { socket, batch } => {
                let sock = agent.batches.get_mut(&batch).and_then(|batch| batch.remove(&socket));
                if let Some(sock) = sock {
                    self.listen(pid, socket, sock);
                } else if agent.listeners.contains_key(&socket) {
                    self.say_serving(pid, socket);
                } else {
                    self.hear_now(pid, Event::OpenFailed { socket });
                }
            }
            Effect::Bind { socket } => self.later(20 * US, 500 * US, Next::Agent(pid, Task::Bind(socket))),
            Effect::AwaitCertificates => {
                self.later(MS, 1_500 * MS, Next::Agent(pid, Task::Hear(Event::CertificatesReady)));
            }
            Effect::EnableModules => {
                self.acts(pid, "enables its modules");
                self.later(10 * US, 900 * US, Next::Agent(pid, Task::Hear(Event::ModulesEnabled)));
            }
            Effect::Greet { peer, greeting } => {
                let named = |listener: &aether_domain::takeover::message::Listener| {
                    agent.listeners.get(&listener.socket).map(|sock| (listener.socket, *sock))
                };
                let socks = greeting.listeners.iter().filter_map(named).collect();
                self.say_to_standby(peer, ToStandby::Greeting(greeting), socks);
            }
            Effect::ToStandby { peer, message } => {
                if message == ToStandby::Yours && agent.successor == Some(Presence::Gone) {
                    self.fail("T07: an owner leaves although its standby had died before");
                }
                self.say_to_standby(peer, message, BTreeMap::new());
            }
            Effect::Drop { peer } => self.owner_closes(peer.0),
            Effect::Drain { round } => {
                agent.accepting = false;
                agent.draining = Some(round);
                let cni = agent.listeners.get(&Socket::Cni).copied();
                if self.is(Fault::LockBeforeFlush) {
                    self.kernel.release_locks(pid);
                    self.lock_freed();
                }
                if let Some(sock) = cni.filter(|_| self.is(Fault::DrainClosesTheListener)) {
                    self.close_socket(pid, sock);
                }
                self.check_drained(pid);
            }
            Effect::TakeBack { .. } => {
                agent.accepting = true;
                agent.draining = None;
                self.wake_acceptor(pid);
            }
            Effect::Flush { round } => {
                self.later(10 * US, 5 * MS, Next::Agent(pid, Task::Hear(Event::Flushed { round })));
            }
            Effect::LookAt { peer, round } => {
                let truly = if self.standby_holds(peer) { Presence::Here } else { Presence::Gone };
                let presence = if self.is(Fault::NoTakeBack) { Presence::Here } else { truly };
                if let Some(agent) = self.agents.get_mut(&pid) {
                    agent.successor = Some(truly);
                }
                self.hear_now(pid, Event::PeerSeen { peer, round, presence });
            }
            Effect::Exit { .. } => {
                if self.is(Fault::UnlinkOfAStrangersPath) || kind != Kind::Modern {
                    self.unlink_at_exit(pid);
                }
                self.die(pid, "ends");
            }
            Effect::Note(_) => {}
        }
    }

    /// What an agent finds when it looks at lock and paths.
    fn sight(&self, pid: Pid) -> Sight {
        let Some(agent) = self.agents.get(&pid) else {
            return Sight { lock: Lock::Replaced, paths: BTreeMap::new() };
        };
        let ours =
            agent.kind == Kind::Lockless || agent.lock.is_some() && agent.lock == self.kernel.lock_path;
        let lock = if ours || self.is(Fault::LockNeverChecked) { Lock::Ours } else { Lock::Replaced };
        let at = |socket: Socket| {
            let held = agent.batches.values().any(|batch| batch.contains_key(&socket));
            let path = match self.kernel.paths.get(&socket) {
                Some(Node::Socket(sock)) if self.holds(pid, socket, *sock) => Path::Ours,
                Some(Node::Socket(sock)) if self.kernel.is_live(*sock) => {
                    Path::Live { pid: self.kernel.holders(*sock).next().map(|holder| holder.0) }
                }
                Some(Node::Socket(_) | Node::Plain) | None => Path::Dead,
            };
            let path = match path {
                Path::Live { .. } if self.is(Fault::PredecessorNotWaitedFor) => Path::Dead,
                Path::Live { .. } | Path::Dead if held && self.is(Fault::StaleDuplicates) => Path::Ours,
                // An agent without the hand-over knows of no such socket.
                _ if agent.kind != Kind::Modern && socket == Socket::Handover => Path::Ours,
                other => other,
            };
            (socket, path)
        };
        Sight { lock, paths: [Socket::Cni, Socket::Handover, Socket::Xds].map(at).into() }
    }

    fn holds(&self, pid: Pid, socket: Socket, sock: Sock) -> bool {
        let Some(agent) = self.agents.get(&pid) else { return false };
        agent.listeners.get(&socket) == Some(&sock)
            || agent.batches.values().any(|batch| batch.get(&socket) == Some(&sock))
    }

    pub(super) fn apply_tombstones(
        &mut self,
        pid: Pid,
        mut left: VecDeque<(String, Tombstone)>,
        half: Half,
        applied: usize,
    ) {
        let Some((name, tombstone)) = left.front().cloned() else {
            self.hear_now(pid, Event::TombstonesApplied { applied });
            return;
        };
        self.acts(pid, "applies a tombstone");
        let next = match half {
            Half::Record => {
                let older = self.disk.records.get(&tombstone.key).is_some_and(|record| {
                    record.started.nanos <= tombstone.started.nanos || self.is(Fault::TombstoneIgnoresStamp)
                });
                if older {
                    self.remove_record(&tombstone.key);
                }
                let now = self.now;
                if let Some(agent) = self.agents.get_mut(&pid) {
                    agent.store.table.del(&tombstone.key, &tombstone.started, now);
                }
                Task::Tombstones(left, Half::Tombstone, applied)
            }
            Half::Tombstone => {
                self.disk.tombstones.remove(&name);
                left.pop_front();
                Task::Tombstones(left, Half::Record, applied + 1)
            }
        };
        self.later(50 * US, 3 * MS, Next::Agent(pid, next));
    }

    pub(super) fn reconcile(&mut self, pid: Pid) {
        self.acts(pid, "reconciles");
        let skipped = self.is(Fault::ReconcileSkipped);
        let records: Vec<_> = self.disk.records.values().cloned().collect();
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let mut added = 0;
        let mut dropped = Vec::new();
        // An agent that starts alone has read nothing yet; the fault is a successor's.
        if !skipped || agent.machine.report().took(Step::Lock).is_none() {
            added = records.iter().filter(|record| agent.store.table.get(&record.key).is_none()).count();
            dropped = agent.store.table.load(records);
        }
        for gone in dropped {
            self.remove_record(&gone.record.key);
        }
        let changes = Changes { added, ..Changes::default() };
        self.hear_now(pid, Event::Reconciled { changes });
    }

    /// The fault: opens the socket out of turn.
    fn open(&mut self, pid: Pid, socket: Socket) {
        let named = self.kernel.listening(socket);
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let mut batches = agent.batches.values_mut();
        let held = batches.find_map(|batch| batch.get(&socket).copied().filter(|sock| named == Some(*sock)));
        match held {
            Some(sock) => {
                for batch in agent.batches.values_mut() {
                    batch.retain(|_, held| *held != sock);
                }
                self.listen(pid, socket, sock);
            }
            None => self.bind(pid, socket),
        }
    }

    fn listen(&mut self, pid: Pid, socket: Socket, sock: Sock) {
        let named = self.kernel.paths.get(&socket) == Some(&Node::Socket(sock));
        // A stranger may have come after the look, before a stop that came then; the next look finds it.
        let recent =
            self.plan.path_taken > 0 && (self.plan.stopped || self.now < self.plan.path_taken + 10 * MS);
        if !named && !recent && !self.two_may_own() {
            self.fail("T13: an heir serves on a duplicate that its path does not name");
        }
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let old = agent.listeners.insert(socket, sock);
        if let Some(old) = old {
            self.close_socket(pid, old);
        }
        self.say_serving(pid, socket);
    }

    /// A temporary name, bound, renamed over the path.
    pub(super) fn bind(&mut self, pid: Pid, socket: Socket) {
        self.acts(pid, "binds a node socket");
        let kind = self.agents.get(&pid).map_or(Kind::Modern, |agent| agent.kind);
        if kind != Kind::Modern && socket == Socket::Handover {
            self.hear_now(pid, Event::Serving { socket, identity: Identity { dev: 0, ino: 0 } });
            return;
        }
        if self.plan.rough && self.rng.chance(2) {
            self.hear_now(pid, Event::OpenFailed { socket });
            return;
        }
        self.judge_bind(pid, socket);
        let sock = self.kernel.bind(socket, pid);
        self.listen(pid, socket, sock);
    }

    pub(super) fn say_serving(&mut self, pid: Pid, socket: Socket) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let ino = agent.listeners.get(&socket).map_or(0, |sock| u64::from(sock.0));
        if socket == Socket::Cni && !agent.accepting && agent.draining.is_none() {
            agent.accepting = true;
            if !matches!(agent.machine.phase(), Phase::Owner(_)) {
                self.judge_begin(pid);
            }
            self.later(US, 900 * MS, Next::Agent(pid, Task::WatchTombstones));
        }
        self.hear_now(pid, Event::Serving { socket, identity: Identity { dev: 1, ino } });
        self.wake_acceptor(pid);
    }

    fn unlink_at_exit(&mut self, pid: Pid) {
        let Some(Node::Socket(named)) = self.kernel.paths.get(&Socket::Cni).copied() else { return };
        let ours =
            self.agents.get(&pid).is_some_and(|agent| agent.listeners.get(&Socket::Cni) == Some(&named));
        let modern = self.agents.get(&pid).is_some_and(|agent| agent.kind == Kind::Modern);
        // Agents of the past unlinked, but only what was theirs.
        if ours || modern {
            self.kernel.paths.remove(&Socket::Cni);
        }
        if modern && !ours && self.kernel.is_live(named) {
            self.fail("T08: an agent unlinks a path that is not its own");
        }
    }
}
