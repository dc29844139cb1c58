//! What a call does in its turn: decide, make durable, tell the table, tell the observer. All of it blocks.

use std::collections::BTreeMap;

use aether_domain::clock::Stamp;
use aether_domain::key::Key;
use aether_domain::pods::table::{Add, Removal, Undo};
use aether_domain::pods::{AddError, Caller, Change, Deleted, NotServing, Presence, ServiceError};
use aether_domain::record::Record;
use aether_domain::text::error_chain;
use aether_durable::atomic::WriteError;
use aether_durable::boot;

use crate::store::Inner;

/// What an ADD did in its own turn.
pub(crate) enum Wrote {
    /// It recorded; these other records of the pod are to go, each in its own turn.
    Recorded { replaced: Vec<Key> },
    /// An earlier attempt of the same call had.
    Standing,
}

/// Whether an undo came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undone {
    Yes,
    /// The record stands, on the disk and in the table.
    No,
}

impl Inner {
    pub(crate) fn add(&self, record: &Record, bytes: &[u8], caller: &dyn Caller) -> Result<Wrote, AddError> {
        let key = &record.key;
        let decision = self.state().serving()?.add(record, boot::nanos());
        let before = match decision {
            Add::Refuse(refusal) => return Err(refusal.into()),
            Add::Standing => None,
            Add::Write { ref before } => before.clone(),
        };
        // K16: in its turn, just before the write. This look is what keeps an ADD that waited here from coming back
        // after its own DEL was answered by another owner, whose memory of DELs we do not have.
        if caller.presence() == Presence::Gone {
            return Err(AddError::CallerGone { key: key.clone() });
        }
        if decision == Add::Standing {
            return Ok(Wrote::Standing);
        }
        let storage = |source| AddError::Storage { key: key.clone(), source };
        self.write(record, bytes, before.as_deref()).map_err(|error| storage(error.into()))?;
        let (was, superseded) = {
            let mut state = self.state();
            (state.table.recorded(record.clone()), state.table.superseded(record))
        };
        if let Some(refusal) = superseded {
            self.undo(record, before);
            return Err(refusal.into());
        }
        if caller.presence() == Presence::Gone && self.undo(record, before) == Undone::Yes {
            return Err(AddError::CallerGone { key: key.clone() });
        }
        self.ports.observer.changed(&match was {
            None => Change::Added(Box::new(record.clone())),
            Some(before) => Change::Updated { before: Box::new(before), after: Box::new(record.clone()) },
        });
        Ok(Wrote::Recorded { replaced: self.state().table.replaced_by(record) })
    }

    /// Takes back what this call wrote (K16).
    fn undo(&self, wrote: &Record, before: Option<Box<Record>>) -> Undone {
        let undo = self.state().table.undo(wrote, before);
        let before = match undo {
            Undo::Nothing => return Undone::Yes,
            Undo::Remove => None,
            Undo::Restore(before) => Some(before),
        };
        if let Err(error) = self.put_back(&wrote.key, before.as_deref()) {
            tracing::warn!(
                key = %wrote.key, error = %error_chain(&error),
                "the record of an ADD that failed could not be taken back; the runtime's DEL or the sweep removes it",
            );
            return Undone::No;
        }
        let mut state = self.state();
        match before {
            Some(before) => drop(state.table.recorded(*before)),
            None => drop(state.table.removed(&wrote.key)),
        }
        Undone::Yes
    }

    pub(crate) fn del(&self, key: &Key, started: &Stamp) -> Result<Deleted, ServiceError> {
        let now = boot::nanos();
        let removal = {
            let mut state = self.state();
            let table = state.serving()?;
            match table.del(key, started, now) {
                // A live call is of this boot, whatever it says. All that is known of its start is that it is not later
                // than now.
                Removal::OtherBoot => table.del(key, &Stamp::new(table.boot().clone(), now), now),
                other => other,
            }
        };
        match removal {
            Removal::Remove(record) => {
                self.take_away([(*record).clone()]).map_err(|error| ServiceError::Storage {
                    what: format!("remove the record of {key}"),
                    source: error.into(),
                })?;
                Ok(Deleted::Removed(record))
            }
            Removal::Spared => Ok(Deleted::Spared),
            Removal::Absent | Removal::OtherBoot => Ok(Deleted::Absent),
        }
    }

    /// Decides about each key in its turn, and removes what is to go; returns the removed records.
    pub(crate) fn remove_if<'a>(
        &self,
        keys: impl IntoIterator<Item = &'a Key>,
        decide: impl Fn(&aether_domain::pods::Table, &Key) -> Removal,
    ) -> Result<Vec<Record>, RemoveError> {
        let going: BTreeMap<Key, Record> = {
            let mut state = self.state();
            let table = state.serving()?;
            keys.into_iter()
                .filter_map(|key| match decide(table, key) {
                    Removal::Remove(record) => Some((key.clone(), *record)),
                    Removal::Spared | Removal::Absent | Removal::OtherBoot => None,
                })
                .collect()
        };
        Ok(self.take_away(going.into_values())?)
    }

    /// Removes records: first from the disk, then from the table, and only then is it told (S04).
    pub(crate) fn take_away(
        &self,
        records: impl IntoIterator<Item = Record>,
    ) -> Result<Vec<Record>, WriteError> {
        let records: Vec<Record> = records.into_iter().collect();
        self.remove_records(records.iter().map(|record| &record.key))?;
        {
            let mut state = self.state();
            for record in &records {
                state.table.removed(&record.key);
            }
        }
        for record in &records {
            self.ports.observer.changed(&Change::Removed(Box::new(record.clone())));
        }
        Ok(records)
    }
}

/// Why records were not removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoveError {
    #[error(transparent)]
    NotServing(#[from] NotServing),
    #[error(transparent)]
    Write(#[from] WriteError),
}
