//! What must hold of the node, asserted where it happens and at the end.

use aether_domain::key::Key;
use aether_domain::record::Record;
use aether_domain::takeover::{Phase, Socket};

use super::agent::{Agent, Kind};
use super::runtime::Word;
use super::{MS, S, World};
use crate::kernel::{Pid, STRANGER};

impl World {
    /// Whether two agents may own the node for a moment: the lock file was removed by hand and an owner was stopped meanwhile, so
    /// that it could say nothing (T01). Nothing else excuses anything.
    pub(super) fn two_may_own(&self) -> bool {
        self.plan.lock_removed && self.plan.stopped
    }

    /// I1: only the owner acts on the node.
    pub(super) fn acts(&mut self, pid: Pid, what: &str) {
        let lockless = self.agents.get(&pid).is_some_and(|agent| agent.kind == Kind::Lockless);
        // Whoever lost its lock by hand finishes what it had begun, and ends.
        let holds = self.kernel.locks.values().any(|holder| *holder == Some(pid));
        if !holds && !lockless && !self.two_may_own() {
            self.fail(&format!("I1, T03: an agent without the lock {what}"));
        }
    }

    /// I1: at most one agent accepts calls, and only with the lock.
    pub(super) fn judge_accept(&mut self, pid: Pid) {
        self.acts(pid, "accepts a call");
        let busy = |other: &Agent| other.accepting || !other.store.ops.is_empty();
        let second =
            self.agents.iter().any(|(other, agent)| *other != pid && !agent.is_dead() && busy(agent));
        if second && !self.two_may_own() {
            self.fail("I1: two agents serve");
        }
    }

    /// T05: when an agent begins to serve, the tombstones that it found are applied and its table is what the disk holds.
    pub(super) fn judge_begin(&mut self, pid: Pid) {
        let Some(agent) = self.agents.get(&pid) else { return };
        let pending = agent.due.iter().any(|name| self.disk.tombstones.contains_key(name));
        let same = agent.store.table.records().eq(self.disk.records.values());
        if pending {
            self.fail("T05: an agent serves with a tombstone pending");
        }
        if !same && !self.two_may_own() {
            self.fail("T05, S03: an agent serves, and its table is not the disk");
        }
    }

    /// T06, T08: nobody's live listener is renamed over.
    pub(super) fn judge_bind(&mut self, pid: Pid, socket: Socket) {
        let Some(sock) = self.kernel.listening(socket) else { return };
        // A stranger on the hand-over socket looks like a standby's duplicate: it accepts and never greets.
        let duplicate = socket == Socket::Handover || self.kernel.listening(Socket::Handover).is_some();
        let foreign = self.kernel.holders(sock).any(|holder| {
            holder == STRANGER && !duplicate
                || holder != pid
                    && self.agents.get(&holder).is_some_and(|other| {
                        !other.is_dead() && other.listeners.get(&socket) == Some(&sock) && other.is_owner()
                    })
        });
        if foreign && !self.two_may_own() {
            self.fail("T06, T08: an agent renames over a live listener that is not a standby's duplicate");
        }
    }

    /// I2: what is acknowledged is on the disk.
    pub(super) fn judge_acknowledged(&mut self, record: &Record) {
        if self.disk.records.get(&record.key).map(|on_disk| &on_disk.started) != Some(&record.started) {
            self.fail("I2, S01: an ADD is acknowledged without its record");
        }
    }

    /// A record leaves the disk: only one with no acknowledged ADD behind it may (I2, I7).
    pub(super) fn remove_record(&mut self, key: &Key) {
        let acknowledged = self.words.get(key) == Some(&Word::Added) && self.disk.records.contains_key(key);
        if acknowledged && !self.two_may_own() {
            self.fail(&format!("I2, I7: the record of {key}, whose ADD was acknowledged, is removed"));
        }
        self.disk.records.remove(key);
    }

    /// The run is over when all calls have ended, and an owner has had its time to settle.
    pub(super) fn is_over(&self) -> bool {
        const SETTLE: u64 = 4 * S;
        const GIVE_UP: u64 = 60 * S;
        let since = self.now.saturating_sub(self.plan.calm);
        if since < SETTLE {
            return false;
        }
        since > GIVE_UP || since % (50 * MS) < MS && self.is_settled()
    }

    fn is_settled(&self) -> bool {
        let ended = |word: &Word| !matches!(word, Word::Busy | Word::Failed);
        let quiet = self.words.values().all(ended) && self.disk.tombstones.is_empty();
        quiet && self.owner().is_some_and(|(_, owner)| owner.store.ops.is_empty() && owner.draining.is_none())
    }

    fn owner(&self) -> Option<(Pid, &Agent)> {
        let serves = |agent: &Agent| {
            agent.is_running() && agent.accepting && matches!(agent.machine.phase(), Phase::Owner(_))
        };
        self.agents
            .iter()
            .find(|(pid, agent)| serves(agent) && self.kernel.owns(**pid))
            .map(|(pid, agent)| (*pid, agent))
    }

    /// What must hold when nothing moves any more.
    pub(super) fn judge(&mut self) {
        let serving: Vec<Pid> = self
            .agents
            .iter()
            .filter(|(_, agent)| !agent.is_dead() && agent.accepting)
            .map(|(pid, _)| *pid)
            .collect();
        // A predecessor that knows no lock and does not end leaves the others standbys (T06, T09).
        if self.agents.values().any(|agent| agent.kind == Kind::Lockless && agent.is_running()) {
            return;
        }
        let Some((owner, agent)) = self.owner() else {
            let phases: Vec<String> = self
                .agents
                .values()
                .filter(|agent| !agent.is_dead())
                .map(|agent| format!("{} is {}", agent.name, agent.machine.phase().name()))
                .collect();
            self.fail(&format!("I5: nobody serves in the end ({})", phases.join(", ")));
            return;
        };
        let named = self.kernel.listening(Socket::Cni);
        let mut wrong = Vec::new();
        if serving != [owner] {
            wrong.push("I1: two agents serve in the end".to_owned());
        }
        if named.is_none() || agent.listeners.get(&Socket::Cni).copied() != named {
            wrong.push("I6: the path does not name the socket that the owner serves".to_owned());
        }
        if !self.disk.tombstones.is_empty() {
            wrong.push("I3: a tombstone is left".to_owned());
        }
        if !agent.store.table.records().eq(self.disk.records.values()) {
            wrong.push("I2, I3: the owner's table is not the disk".to_owned());
        }
        for (key, word) in &self.words {
            let there = self.disk.records.contains_key(key);
            match word {
                Word::Added if !there => wrong.push(format!("I2: the record of {key} is lost")),
                Word::Deleted if there => wrong.push(format!("I3: the record of {key} is a ghost")),
                Word::Busy | Word::Failed => wrong.push(format!("a call of {key} has not ended")),
                // Its replacement may have failed.
                Word::Added | Word::Deleted | Word::Superseded => {}
            }
        }
        // Two owners for a moment: what the one that was stopped had in hand, the other does not know.
        let wrong = if self.two_may_own() { Vec::new() } else { wrong };
        if let Some(first) = wrong.first() {
            self.fail(first);
        }
    }
}
