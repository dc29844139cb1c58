//! The records of a node and what a call does to them.
//!
//! A decision never changes the records: the store makes it durable first and then says so ([`Table::recorded`],
//! [`Table::removed`]). So the table is never ahead of the disk, and a failed write changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::{BootId, Stamp};
use crate::ids::NetworkName;
use crate::key::Key;
use crate::managed::Managed;
use crate::pods::forgotten::Forgotten;
use crate::pods::port::Known;
use crate::record::Record;

/// What is known of the node's attachments.
#[derive(Debug, Clone)]
pub struct Table {
    boot: BootId,
    records: BTreeMap<Key, Arc<Record>>,
    forgotten: Forgotten,
}

/// What an ADD must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Add {
    /// Write the record. An undo puts `before` back, or removes what was written where there was none (K16).
    Write {
        /// What another call recorded under this key.
        before: Option<Box<Record>>,
    },
    /// It is recorded already, by an earlier attempt of the same call: nothing is to be written (K05).
    Standing,
    /// It must fail.
    Refuse(Refusal),
}

/// Why an ADD is refused. Another attempt of the same call would be refused too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A DEL of the same key began later or at the same moment (K07).
    #[error(
        "cannot add {key}: it was deleted by a DEL that began after this ADD ({del_ns} ns, this ADD at {add_ns} ns of this boot); \
         the runtime makes a new attempt if it still wants the pod"
    )]
    Deleted {
        /// The attachment.
        key: Key,
        /// When the ADD began.
        add_ns: u64,
        /// When the DEL began.
        del_ns: u64,
    },
    /// A later ADD of the same key, or of the same pod and interface in another sandbox, is recorded (K05).
    #[error(
        "cannot add {key}: {by} is recorded for the same pod and interface and began later ({by_ns} ns, this ADD at {add_ns} ns of \
         this boot); the later sandbox stays"
    )]
    Superseded {
        /// The attachment.
        key: Key,
        /// When the ADD began.
        add_ns: u64,
        /// The later attachment.
        by: Key,
        /// When that one began.
        by_ns: u64,
    },
    /// The call says that it began in another boot of the node.
    #[error("cannot add {key}: the call says that it began in boot {theirs:?}, but this is boot {ours}")]
    OtherBoot {
        /// The attachment.
        key: Key,
        /// The call's boot.
        theirs: String,
        /// This boot.
        ours: BootId,
    },
}

/// What a DEL, live or from a tombstone, must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// Remove this record.
    Remove(Box<Record>),
    /// The record is of an ADD that began later: it stays (K07).
    Spared,
    /// There is no record.
    Absent,
    /// The DEL is of another boot, whose pods are gone: it is dropped (K07).
    OtherBoot,
}

/// What finds its caller gone takes back what it wrote itself (K16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undo {
    /// Remove the record.
    Remove,
    /// Write what another call had recorded before.
    Restore(Box<Record>),
    /// The record is not the one that the call wrote: it stays.
    Nothing,
}

/// A record that a load leaves out, to be removed from the disk by the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The record.
    pub record: Record,
    /// Why.
    pub why: Why,
}

/// Why a load leaves a record out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is of another boot (S06).
    OtherBoot,
    /// A later sandbox of the same pod is recorded: a kill came between writing the one and removing the other (K05).
    Replaced {
        /// The later one.
        by: Key,
    },
}

impl Table {
    /// An empty table of this boot.
    pub fn new(boot: BootId) -> Self {
        Self { boot, records: BTreeMap::new(), forgotten: Forgotten::default() }
    }

    /// Takes the records that were read from the disk in place of those it had; the memory of DELs stays.
    pub fn load<R: Into<Arc<Record>>>(&mut self, records: Vec<R>) -> Vec<Dropped> {
        let (ours, others): (Vec<Arc<Record>>, Vec<_>) =
            records.into_iter().map(Into::into).partition(|record| record.is_of(&self.boot));
        let other = |record| Dropped { record: Arc::unwrap_or_clone(record), why: Why::OtherBoot };
        let mut dropped: Vec<_> = others.into_iter().map(other).collect();
        self.records = ours.into_iter().map(|record| (record.key.clone(), record)).collect();
        let replaced: Vec<(Key, Key)> = self
            .records
            .values()
            .filter_map(|old| self.successor(old).map(|new| (old.key.clone(), new.key.clone())))
            .collect();
        for (old, by) in replaced {
            dropped.extend(self.removed(&old).map(|record| Dropped { record, why: Why::Replaced { by } }));
        }
        dropped
    }

    /// The boot that the table is of.
    pub fn boot(&self) -> &BootId {
        &self.boot
    }

    /// The record of `key`.
    pub fn get(&self, key: &Key) -> Option<&Record> {
        self.records.get(key).map(Arc::as_ref)
    }

    /// Every record, by key.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &Record> {
        self.records.values().map(Arc::as_ref)
    }

    /// The same, to be kept.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = &Arc<Record>> {
        self.records.values()
    }

    /// Decides about an ADD (K05, K07). The order of the questions does not matter: each refusal stands alone.
    pub fn add(&self, record: &Record, now: u64) -> Add {
        let key = &record.key;
        let add_ns = record.started.nanos;
        if !record.is_of(&self.boot) {
            let theirs = record.started.boot.as_str().chars().take(64).collect();
            return Add::Refuse(Refusal::OtherBoot { key: key.clone(), theirs, ours: self.boot.clone() });
        }
        // Not later is refused: a DEL of the same moment removes the record when it comes second, so it must win when
        // it comes first.
        if let Some(del_ns) = self.forgotten.latest(key, now).filter(|del_ns| add_ns <= *del_ns) {
            return Add::Refuse(Refusal::Deleted { key: key.clone(), add_ns, del_ns });
        }
        if let Some(refusal) = self.superseded(record) {
            return Add::Refuse(refusal);
        }
        let before = self.get(key);
        match before {
            Some(before) if before == record => Add::Standing,
            // The same call again, with other content: what is undone is all of that call's.
            Some(before) if before.started == record.started => Add::Write { before: None },
            other => Add::Write { before: other.cloned().map(Box::new) },
        }
    }

    /// Whether a later ADD of the key, or a later sandbox of the same pod, is recorded (K05). Asked again once an ADD is
    /// recorded: two sandboxes of one pod have two lanes, and the one that is recorded second sees the other.
    pub fn superseded(&self, record: &Record) -> Option<Refusal> {
        let later_same = self.get(&record.key).filter(|other| other.started.nanos > record.started.nanos);
        let by = later_same.or_else(|| self.successor(record))?;
        Some(Refusal::Superseded {
            key: record.key.clone(),
            add_ns: record.started.nanos,
            by: by.key.clone(),
            by_ns: by.started.nanos,
        })
    }

    /// The records that this one replaces: the same pod's same interface in sandboxes that began earlier (K05).
    pub fn replaced_by(&self, record: &Record) -> Vec<Key> {
        let earlier = |old: &&Record| record.replaces(old) && old.started.nanos < record.started.nanos;
        self.records().filter(earlier).map(|old| old.key.clone()).collect()
    }

    /// Decides again about one replaced record when its turn comes: meanwhile it may have been added anew (K05).
    pub fn replace(&self, old: &Key, by: &Record) -> Removal {
        match self.get(old) {
            None => Removal::Absent,
            Some(old) if by.replaces(old) && old.started.nanos < by.started.nanos => {
                Removal::Remove(Box::new(old.clone()))
            }
            Some(_) => Removal::Spared,
        }
    }

    /// Decides about a DEL or a tombstone, and remembers its start from `now` on (K07).
    pub fn del(&mut self, key: &Key, started: &Stamp, now: u64) -> Removal {
        if started.boot != self.boot {
            return Removal::OtherBoot;
        }
        self.forgotten.note(key, started.nanos, now);
        match self.get(key) {
            None => Removal::Absent,
            Some(record) if record.started.nanos > started.nanos => Removal::Spared,
            Some(record) => Removal::Remove(Box::new(record.clone())),
        }
    }

    /// Decides what a call that wrote `wrote` over `before` takes back (K16).
    pub fn undo(&self, wrote: &Record, before: Option<Box<Record>>) -> Undo {
        match (self.get(&wrote.key), before) {
            (Some(now), _) if now != wrote => Undo::Nothing,
            (None, _) => Undo::Nothing,
            (Some(_), Some(before)) => Undo::Restore(before),
            (Some(_), None) => Undo::Remove,
        }
    }

    /// Answers a CHECK (K09). Both times are seconds since 1970.
    pub fn check(&self, key: &Key, netns_created: Option<u64>, first_installed: Option<u64>) -> Known {
        match (self.get(key), netns_created, first_installed) {
            (Some(record), _, _) => match record.managed {
                Managed::Yes => Known::Managed,
                Managed::OptedOut | Managed::Ignored => Known::Unmanaged,
            },
            (None, Some(created), Some(installed)) if created < installed => Known::BeforeInstall,
            (None, _, _) => Known::Missing,
        }
    }

    /// What a GC removes: the network's records that are not listed and whose ADD did not begin after it (K11).
    pub fn gc(&self, network: &NetworkName, valid: &BTreeSet<Key>, started: &Stamp) -> Vec<Key> {
        let goes = |record: &&Record| !valid.contains(&record.key) && self.gc_takes(record, network, started);
        self.records().filter(goes).map(|record| record.key.clone()).collect()
    }

    /// Decides again about one record of a GC when its turn comes: meanwhile it may have been added anew (K11).
    pub fn gc_one(&self, key: &Key, network: &NetworkName, started: &Stamp) -> Removal {
        match self.get(key) {
            None => Removal::Absent,
            Some(record) if self.gc_takes(record, network, started) => {
                Removal::Remove(Box::new(record.clone()))
            }
            Some(_) => Removal::Spared,
        }
    }

    /// Decides again about one record that a sweep found without its namespace (S06).
    pub fn sweep_one(&self, looked_at: &Record) -> Removal {
        match self.get(&looked_at.key) {
            None => Removal::Absent,
            Some(record) if record == looked_at => Removal::Remove(Box::new(record.clone())),
            Some(_) => Removal::Spared,
        }
    }

    /// The record is on the disk. Returns the one that it took the place of.
    pub fn recorded(&mut self, record: Record) -> Option<Record> {
        self.records.insert(record.key.clone(), Arc::new(record)).map(Arc::unwrap_or_clone)
    }

    /// The record is gone from the disk.
    pub fn removed(&mut self, key: &Key) -> Option<Record> {
        self.records.remove(key).map(Arc::unwrap_or_clone)
    }

    fn gc_takes(&self, record: &Record, network: &NetworkName, started: &Stamp) -> bool {
        started.boot == self.boot && record.network == *network && record.started.nanos < started.nanos
    }

    /// The latest record of the same pod and interface in another sandbox that began later than `record`.
    fn successor(&self, record: &Record) -> Option<&Record> {
        let later = |other: &&Record| other.replaces(record) && other.started.nanos > record.started.nanos;
        self.records().filter(later).max_by_key(|other| other.started.nanos)
    }
}

#[cfg(test)]
mod tests;
