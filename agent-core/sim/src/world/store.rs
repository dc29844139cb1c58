//! The store of one agent: calls of one key in their order (K16), each step durable before the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aether_domain::clock::BootId;
use aether_domain::key::Key;
use aether_domain::pods::Table;
use aether_domain::pods::table::{Add, Removal, Undo};
use aether_domain::record::Record;
use aether_domain::takeover::Event;

use super::agent::Task;
use super::plugin::{Answer, What};
use super::{MS, Next, S, US, World};
use crate::fault::Fault;
use crate::kernel::Pid;

/// One agent's records in memory, and what is in flight.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) table: Table,
    lanes: BTreeMap<Key, VecDeque<u64>>,
    pub(super) ops: BTreeMap<u64, Op>,
    /// Tombstones in hand.
    hands: BTreeSet<String>,
}

impl Store {
    pub(super) fn new(boot: BootId) -> Self {
        Self { table: Table::new(boot), lanes: BTreeMap::new(), ops: BTreeMap::new(), hands: BTreeSet::new() }
    }
}

/// A call or a tombstone in its lane.
#[derive(Debug, Clone)]
pub(super) struct Op {
    key: Key,
    what: Do,
    stage: Stage,
}

#[derive(Debug, Clone)]
enum Do {
    Add { call: usize, record: Box<Record>, before: Option<Box<Record>>, pending: usize },
    Del { call: usize },
    Tombstone { name: String },
    Replace { by: Box<Record>, parent: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its turn has come.
    Turn,
    /// The disk has taken what was decided.
    Durable,
    /// Earlier sandboxes of the pod are being removed.
    Replacing,
    /// The answer.
    Answer,
    /// The tombstone itself.
    Unlink,
    /// The disk has taken what an undo decided.
    Undone,
}

impl World {
    pub(super) fn accept_call(&mut self, pid: Pid, call: usize, serial: u32) {
        let Some(known) = self.calls.get_mut(call) else { return };
        if known.serial != serial && !known.gone {
            return;
        }
        known.hands = Some(pid);
        let (key, what) = (known.key.clone(), known.what.clone());
        self.judge_accept(pid);
        let what = match what {
            What::Add(record) => Do::Add { call, record, before: None, pending: 0 },
            What::Del => Do::Del { call },
        };
        self.enter(pid, Op { key, what, stage: Stage::Turn });
    }

    fn enter(&mut self, pid: Pid, op: Op) -> u64 {
        let id = self.number();
        let Some(agent) = self.agents.get_mut(&pid) else { return id };
        let lane = agent.store.lanes.entry(op.key.clone()).or_default();
        lane.push_back(id);
        let first = lane.len() == 1;
        agent.store.ops.insert(id, op);
        if first {
            self.later(5 * US, 200 * US, Next::Agent(pid, Task::Op(id)));
        }
        id
    }

    fn leave(&mut self, pid: Pid, id: u64) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        let Some(op) = agent.store.ops.remove(&id) else { return };
        if let Do::Tombstone { name } = &op.what {
            agent.store.hands.remove(name);
        }
        let mut next = None;
        if let Some(lane) = agent.store.lanes.get_mut(&op.key) {
            lane.retain(|waiting| *waiting != id);
            next = lane.front().copied();
            if lane.is_empty() {
                agent.store.lanes.remove(&op.key);
            }
        }
        if let Some(next) = next {
            self.later(5 * US, 100 * US, Next::Agent(pid, Task::Op(next)));
        }
        self.check_drained(pid);
    }

    pub(super) fn check_drained(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get(&pid) else { return };
        // The fault: what is in flight is not waited for either.
        let empty = agent.store.ops.is_empty() || self.is(Fault::LockBeforeFlush);
        if let Some(round) = agent.draining.filter(|_| empty) {
            self.hear_soon(pid, Event::Drained { round });
        }
    }

    pub(super) fn watch_tombstones(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        if agent.accepting && self.fault != Some(Fault::NoTombstoneWatch) {
            let new: Vec<_> = self
                .disk
                .tombstones
                .iter()
                .filter(|(name, _)| agent.store.hands.insert((*name).clone()))
                .map(|(name, tombstone)| (name.clone(), tombstone.key.clone()))
                .collect();
            for (name, key) in new {
                self.enter(pid, Op { key, what: Do::Tombstone { name }, stage: Stage::Turn });
            }
        }
        // inotify is quicker, the poll surer.
        self.later(100 * MS, 900 * MS, Next::Agent(pid, Task::WatchTombstones));
    }

    pub(super) fn op(&mut self, pid: Pid, id: u64) {
        let Some(op) = self.agents.get(&pid).and_then(|agent| agent.store.ops.get(&id)).cloned() else {
            return;
        };
        match (&op.what, op.stage) {
            (Do::Add { call, record, before, pending }, stage) => {
                self.add(pid, id, *call, record, before.as_deref(), *pending, stage);
            }
            (Do::Del { call }, stage) => self.del(pid, id, *call, &op.key, stage),
            (Do::Tombstone { name }, stage) => self.tombstone(pid, id, name, &op.key, stage),
            (Do::Replace { by, parent }, stage) => self.replace(pid, id, by, *parent, &op.key, stage),
        }
    }

    /// The next stage of an op, after the disk or at once.
    fn go(&mut self, pid: Pid, id: u64, stage: Stage) {
        if let Some(op) = self.agents.get_mut(&pid).and_then(|agent| agent.store.ops.get_mut(&id)) {
            op.stage = stage;
        }
        let (low, high) = match stage {
            Stage::Durable | Stage::Unlink | Stage::Undone if self.rng.chance(3) => (MS, 60 * MS),
            Stage::Durable | Stage::Unlink | Stage::Undone => (100 * US, 4 * MS),
            Stage::Turn | Stage::Replacing | Stage::Answer => (US, 50 * US),
        };
        self.later(low, high, Next::Agent(pid, Task::Op(id)));
    }

    #[allow(clippy::too_many_arguments, reason = "one op's content, taken apart once")]
    fn add(
        &mut self,
        pid: Pid,
        id: u64,
        call: usize,
        record: &Record,
        before: Option<&Record>,
        pending: usize,
        stage: Stage,
    ) {
        let blind = self.is(Fault::CallerNotLookedAt);
        let gone = self.calls.get(call).is_some_and(|call| call.gone) && !blind;
        let early = self.is(Fault::AcknowledgedBeforeDurable);
        // The fault also forgets DELs.
        let now = self.now + if blind { 120 * S } else { 0 };
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        match stage {
            Stage::Turn if gone => self.leave(pid, id),
            Stage::Turn => match agent.store.table.add(record, now) {
                Add::Refuse(refusal) => {
                    self.answer(call, Answer::Refused(refusal.to_string()));
                    self.leave(pid, id);
                }
                Add::Standing => self.go(pid, id, Stage::Answer),
                Add::Write { before } => {
                    if let Some(Do::Add { before: kept, .. }) =
                        agent.store.ops.get_mut(&id).map(|op| &mut op.what)
                    {
                        *kept = before;
                    }
                    if early {
                        self.answer(call, Answer::Done);
                    }
                    self.go(pid, id, Stage::Durable);
                }
            },
            Stage::Durable => {
                self.acts(pid, "writes a record");
                self.disk.records.insert(record.key.clone(), record.clone());
                let Some(agent) = self.agents.get_mut(&pid) else { return };
                agent.store.table.recorded(record.clone());
                let replaced = agent.store.table.replaced_by(record);
                if let Some(Do::Add { pending, .. }) = agent.store.ops.get_mut(&id).map(|op| &mut op.what) {
                    *pending = replaced.len();
                }
                for key in replaced {
                    let what = Do::Replace { by: Box::new(record.clone()), parent: id };
                    self.enter(pid, Op { key, what, stage: Stage::Turn });
                }
                self.go(pid, id, Stage::Replacing);
            }
            // Each replaced sandbox wakes it again.
            Stage::Replacing if pending > 0 => {}
            Stage::Replacing => self.go(pid, id, Stage::Answer),
            Stage::Answer if gone => self.go(pid, id, Stage::Undone),
            Stage::Answer => {
                if !early {
                    self.answer(call, Answer::Done);
                    self.judge_acknowledged(record);
                }
                self.leave(pid, id);
            }
            Stage::Undone => {
                match agent.store.table.undo(record, before.cloned().map(Box::new)) {
                    Undo::Remove => {
                        agent.store.table.removed(&record.key);
                        self.remove_record(&record.key);
                    }
                    Undo::Restore(before) => {
                        agent.store.table.recorded((*before).clone());
                        self.disk.records.insert(before.key.clone(), *before);
                    }
                    Undo::Nothing => {}
                }
                self.leave(pid, id);
            }
            Stage::Unlink => {}
        }
    }

    fn del(&mut self, pid: Pid, id: u64, call: usize, key: &Key, stage: Stage) {
        let Some(started) = self.calls.get(call).map(|call| call.started.clone()) else { return };
        let now = self.now;
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        match stage {
            Stage::Turn => match agent.store.table.del(key, &started, now) {
                Removal::Remove(_) => self.go(pid, id, Stage::Durable),
                Removal::Spared | Removal::Absent | Removal::OtherBoot => self.go(pid, id, Stage::Answer),
            },
            Stage::Durable => {
                agent.store.table.removed(key);
                self.remove_record(key);
                self.go(pid, id, Stage::Answer);
            }
            Stage::Answer | Stage::Replacing | Stage::Unlink | Stage::Undone => {
                self.answer(call, Answer::Done);
                self.leave(pid, id);
            }
        }
    }

    fn tombstone(&mut self, pid: Pid, id: u64, name: &str, key: &Key, stage: Stage) {
        let now = self.now;
        let tombstone = self.disk.tombstones.get(name).cloned();
        let blind = self.is(Fault::TombstoneIgnoresStamp);
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        match (stage, tombstone) {
            (Stage::Turn, Some(tombstone)) => match agent.store.table.del(key, &tombstone.started, now) {
                Removal::Remove(_) => self.go(pid, id, Stage::Durable),
                Removal::Spared if blind => self.go(pid, id, Stage::Durable),
                Removal::Spared | Removal::Absent | Removal::OtherBoot => self.go(pid, id, Stage::Unlink),
            },
            (Stage::Durable, _) => {
                agent.store.table.removed(key);
                self.remove_record(key);
                self.go(pid, id, Stage::Unlink);
            }
            (Stage::Unlink, _) => {
                self.disk.tombstones.remove(name);
                self.leave(pid, id);
            }
            (Stage::Turn, None) | (Stage::Replacing | Stage::Answer | Stage::Undone, _) => {
                self.leave(pid, id);
            }
        }
    }

    fn replace(&mut self, pid: Pid, id: u64, by: &Record, parent: u64, key: &Key, stage: Stage) {
        let Some(agent) = self.agents.get_mut(&pid) else { return };
        if stage == Stage::Turn
            && let Removal::Remove(_) = agent.store.table.replace(key, by)
        {
            self.go(pid, id, Stage::Durable);
            return;
        }
        if stage == Stage::Durable {
            agent.store.table.removed(key);
            self.remove_record(key);
        }
        if let Some(agent) = self.agents.get_mut(&pid)
            && let Some(Do::Add { pending, .. }) = agent.store.ops.get_mut(&parent).map(|op| &mut op.what)
        {
            *pending = pending.saturating_sub(1);
        }
        self.leave(pid, id);
        self.go(pid, parent, Stage::Replacing);
    }
}
