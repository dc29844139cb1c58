//! Without the lock: call on the owner, be greeted, be complete, be chosen, get the lock (T03, T04, T13).

use super::effect::Effect;
use super::machine::Machine;
use super::message::{Greeting, OLDEST, Role, ToOwner, ToStandby, VERSION};
use super::moment::{Attach, Batch, Moment};
use super::note::Note;
use super::phase::{Came, Held, Link, LockTry, Phase, Stage, Standby, Told};
use crate::limits::{DUPLICATES_KEPT, GREETING_WAIT, LOCK_RETRY};

impl Machine {
    pub(super) fn lock_taken(&mut self) {
        match &mut self.phase {
            Phase::Starting => self.take_node(Came::Lone, None, self.now, Said::Nothing),
            Phase::Standby(standby) => {
                let (link, held, since) = (standby.link, standby.held.take(), standby.since);
                let said = if standby.yours { Said::Yours } else { Said::Nothing };
                match (link, said) {
                    // The owner's connection still stands and it has not said that it ends. One that dies closes it in a
                    // moment; one that lives has lost its lock to us, and is waited for (T01).
                    (Link::Greeted { attach }, Said::Nothing) => self.yield_to(attach, held),
                    (Link::Calling { attach, .. } | Link::Greeted { attach }, _) => {
                        self.put(Effect::Detach { attach });
                        self.take_node(Came::Heir, held, since, said);
                    }
                    (Link::Apart { .. }, _) => self.take_node(Came::Heir, held, since, said),
                }
            }
            // A late answer of the thread in flock: the shell lets that lock go.
            Phase::New | Phase::Taking(_) | Phase::Owner(_) | Phase::Ended => {}
        }
    }

    pub(super) fn attach_failed(&mut self, attach: Attach) {
        match &mut self.phase {
            Phase::Standby(standby) if standby.is_calling(attach) => {
                standby.link = Link::Apart { again: self.now.after(LOCK_RETRY) };
            }
            Phase::Taking(_) => self.heir_call_failed(attach),
            Phase::Standby(_) | Phase::New | Phase::Starting | Phase::Owner(_) | Phase::Ended => {}
        }
    }

    pub(super) fn owner_gone(&mut self, attach: Attach) {
        match &mut self.phase {
            Phase::Standby(standby) => match standby.link {
                Link::Greeted { attach: greeted } if greeted == attach => {
                    // The kernel may close the connection before it lets the lock go: at once, and then again and again.
                    standby.link = Link::Apart { again: self.now };
                    standby.parted(self.now);
                    self.note(Note::OwnerGone);
                }
                // Turned away, or called on somebody who is no owner yet: not again at once.
                Link::Calling { attach: calling, .. } if calling == attach => {
                    standby.link = Link::Apart { again: self.now.after(GREETING_WAIT) };
                }
                Link::Apart { .. } | Link::Calling { .. } | Link::Greeted { .. } => {}
            },
            Phase::Taking(_) => self.heir_call_failed(attach),
            Phase::New | Phase::Starting | Phase::Owner(_) | Phase::Ended => {}
        }
    }

    pub(super) fn hear_owner(&mut self, attach: Attach, message: ToStandby, batch: Option<Batch>) {
        let current = match &self.phase {
            Phase::Standby(standby) => standby.is_calling(attach) || standby.is_greeted(attach),
            Phase::Taking(taking) => match taking.stage {
                Stage::Calling { attach: calling, .. } | Stage::Yielding { attach: calling, .. } => {
                    calling == attach
                }
                Stage::Looking { .. }
                | Stage::Foreign { .. }
                | Stage::Tombstones
                | Stage::Reconciling
                | Stage::Placing { .. }
                | Stage::Opening { .. }
                | Stage::Failed { .. } => false,
            },
            Phase::New | Phase::Starting | Phase::Owner(_) | Phase::Ended => false,
        };
        match (message, batch) {
            (ToStandby::Greeting(greeting), batch) if current => self.greeted(attach, &greeting, batch),
            // Listeners that belong to nothing: never served, so not to be kept.
            (_, Some(batch)) => self.put(Effect::Close { batch }),
            (ToStandby::Chosen, None) if current => self.chosen(),
            (ToStandby::NotChosen, None) if current => self.not_chosen(),
            (ToStandby::Leaving, None) if current => self.owner_leaves(attach),
            (ToStandby::Yours, None) if current => self.yours(),
            (
                ToStandby::Greeting(_)
                | ToStandby::Chosen
                | ToStandby::NotChosen
                | ToStandby::Leaving
                | ToStandby::Yours,
                None,
            ) => {}
        }
    }

    fn greeted(&mut self, attach: Attach, greeting: &Greeting, batch: Option<Batch>) {
        let now = self.now;
        let held = batch.map(|batch| Held::new(batch, greeting));
        let old = match &mut self.phase {
            Phase::Standby(standby) => {
                if !(OLDEST..=VERSION).contains(&greeting.version) {
                    // It cannot be understood: as if it had not greeted (T06), or had ended since.
                    if standby.is_greeted(attach) {
                        standby.parted(now);
                    }
                    standby.link = Link::Apart { again: now.after(GREETING_WAIT) };
                    let theirs = (greeting.version, greeting.version);
                    self.put(Effect::Detach { attach });
                    self.note(Note::NoCommonVersion { theirs });
                    if let Some(batch) = batch {
                        self.put(Effect::Close { batch });
                    }
                    return;
                }
                if standby.is_calling(attach) {
                    standby.link = Link::Greeted { attach };
                    standby.yours = false;
                    standby.told = Told::Incomplete;
                    let waited = std::mem::replace(&mut standby.lock, LockTry::Resting) == LockTry::Waiting;
                    if waited {
                        self.put(Effect::StopWaiting);
                    }
                    let listeners = greeting.listeners.len();
                    self.note(Note::Attached { owner: greeting.name.clone(), listeners });
                }
                let Phase::Standby(standby) = &mut self.phase else { return };
                std::mem::replace(&mut standby.held, held)
            }
            Phase::Taking(taking) => {
                let old = std::mem::replace(&mut taking.held, held);
                self.heir_greeted(attach);
                old
            }
            Phase::New | Phase::Starting | Phase::Owner(_) | Phase::Ended => held,
        };
        // Callers in an older queue that only standbys hold are reset and try again (K04).
        if let Some(old) = old {
            self.put(Effect::Close { batch: old.batch });
        }
    }

    fn chosen(&mut self) {
        if let Phase::Standby(standby) = &mut self.phase
            && standby.lock == LockTry::Resting
        {
            standby.lock = LockTry::Waiting;
            self.put(Effect::WaitLock);
        }
    }

    fn not_chosen(&mut self) {
        if let Phase::Standby(standby) = &mut self.phase
            && standby.lock == LockTry::Waiting
        {
            standby.lock = LockTry::Resting;
            self.put(Effect::StopWaiting);
        }
    }

    /// "Ready?" Only a complete standby says so; whoever is asked is the chosen one.
    fn owner_leaves(&mut self, attach: Attach) {
        if matches!(self.phase, Phase::Standby(_)) && self.gates.complete(self.now) {
            self.chosen();
            self.put(Effect::ToOwner { attach, message: ToOwner::Ready });
        }
    }

    fn yours(&mut self) {
        match &mut self.phase {
            Phase::Standby(standby) => {
                standby.yours = true;
                standby.since = self.now;
            }
            // The lock was quicker than the word. The owner has written everything: its end need not be waited for.
            Phase::Taking(taking) => {
                let waits_for = match taking.stage {
                    Stage::Yielding { attach, .. } => Some(attach),
                    _ => None,
                };
                self.report.yours = true;
                if let Some(attach) = waits_for {
                    self.put(Effect::Detach { attach });
                    self.start_over();
                }
            }
            Phase::New | Phase::Starting | Phase::Owner(_) | Phase::Ended => {}
        }
    }

    pub(super) fn standby_time(&mut self) {
        let now = self.now;
        let complete = self.gates.complete(now);
        let Phase::Standby(standby) = &mut self.phase else { return };
        let told = if complete { Told::Complete } else { Told::Incomplete };
        if let Link::Greeted { attach } = standby.link
            && standby.told != told
        {
            standby.told = told;
            let message = if complete { ToOwner::Complete } else { ToOwner::Incomplete };
            self.put(Effect::ToOwner { attach, message });
        }
        self.drop_duplicates(now);
        self.try_lock(now);
        self.call(now);
    }

    /// Where `handover.sock` is gone, an heir cannot tell this agent's duplicate of `cni.sock` from an agent of the past and
    /// waits for its end (T06).
    fn drop_duplicates(&mut self, now: Moment) {
        let Phase::Standby(standby) = &mut self.phase else { return };
        let greeted = matches!(standby.link, Link::Greeted { .. });
        if !greeted
            && now.since(standby.since) >= DUPLICATES_KEPT
            && let Some(held) = standby.held.take()
        {
            self.put(Effect::Close { batch: held.batch });
        }
    }

    fn try_lock(&mut self, now: Moment) {
        if let Phase::Standby(standby) = &mut self.phase
            && let LockTry::Polling { next } = standby.lock
            && next <= now
        {
            standby.lock = LockTry::Polling { next: now.after(LOCK_RETRY) };
            self.put(Effect::TryLock);
        }
    }

    fn call(&mut self, now: Moment) {
        let Phase::Standby(standby) = &self.phase else { return };
        let late = match standby.link {
            Link::Apart { again } if again <= now => None,
            Link::Calling { attach, until } if until <= now => Some(attach),
            Link::Apart { .. } | Link::Calling { .. } | Link::Greeted { .. } => return,
        };
        if let Some(attach) = late {
            self.put(Effect::Detach { attach });
        }
        let attach = self.attach();
        if let Phase::Standby(standby) = &mut self.phase {
            standby.link = Link::Calling { attach, until: now.after(GREETING_WAIT) };
        }
        let hello = self.hello(Role::Standby);
        self.put(Effect::Attach { attach, hello });
    }
}

/// What the last owner said before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    /// "Yours".
    Yours,
    /// Nothing: it died, or there was none.
    Nothing,
}

impl Standby {
    /// No owner tells it any more when to try for the lock: it tries by itself.
    fn parted(&mut self, now: Moment) {
        self.since = now;
        self.told = Told::Incomplete;
        if self.lock == LockTry::Resting {
            self.lock = LockTry::Polling { next: now };
        }
    }

    fn is_calling(&self, attach: Attach) -> bool {
        matches!(self.link, Link::Calling { attach: calling, .. } if calling == attach)
    }

    fn is_greeted(&self, attach: Attach) -> bool {
        matches!(self.link, Link::Greeted { attach: greeted } if greeted == attach)
    }
}
