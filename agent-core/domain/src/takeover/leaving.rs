//! The end of an owner: asked for by SIGTERM and put off while nobody could take over (T12), handed to a standby that says
//! "ready", taken back when that one dies (T07).

use std::collections::BTreeSet;

use super::effect::{Effect, Reason};
use super::machine::Machine;
use super::message::ToStandby;
use super::moment::{Moment, Peer, Round};
use super::note::Note;
use super::phase::{Cause, Drain, Leaving, Owner, Phase, Told};
use crate::limits::{READY_WAIT, TERMINATION_WAIT_DIVISOR};
use crate::pods::Presence;

impl Machine {
    pub(super) fn owner_terminate(&mut self) {
        let at_most = self.config.termination_grace / TERMINATION_WAIT_DIVISOR;
        let until = self.now.after(at_most);
        let Phase::Owner(owner) = &self.phase else { return };
        if owner.leaving != Leaving::No {
            return;
        }
        if owner.peers.is_empty() {
            self.drain(None, Cause::Terminated, until);
        } else {
            self.ask(BTreeSet::new(), until);
        }
    }

    /// Asks the newest complete standby that was not asked yet; without one, T12's wait.
    fn ask(&mut self, mut asked: BTreeSet<Peer>, until: Moment) {
        let now = self.now;
        let Phase::Owner(owner) = &mut self.phase else { return };
        if until <= now {
            self.drain(None, Cause::Terminated, until);
            return;
        }
        let Some(peer) = owner.newest_complete(&asked) else {
            owner.leaving = Leaving::Waiting { until };
            self.note(Note::PutOff { at_most: until.since(now) });
            return;
        };
        asked.insert(peer);
        owner.leaving = Leaving::Asking { peer, answer_by: now.after(READY_WAIT), asked, until };
        self.put(Effect::ToStandby { peer, message: ToStandby::Leaving });
    }

    /// A standby has become complete.
    pub(super) fn standby_complete(&mut self) {
        if let Phase::Owner(Owner { leaving: Leaving::Waiting { until }, .. }) = &self.phase {
            let until = *until;
            self.ask(BTreeSet::new(), until);
        }
    }

    /// "Ready", also from one that was asked before and answers late: it lives.
    pub(super) fn ready_from(&mut self, peer: Peer) {
        let Phase::Owner(owner) = &self.phase else { return };
        let until = match &owner.leaving {
            Leaving::Asking { asked, until, .. } if asked.contains(&peer) => *until,
            Leaving::Waiting { until } => *until,
            Leaving::No
            | Leaving::Asking { .. }
            | Leaving::Draining(_)
            | Leaving::Flushing(_)
            | Leaving::Looking(_) => return,
        };
        if owner.peers.get(&peer).is_some_and(|standby| standby.told == Told::Complete) {
            self.drain(Some(peer), Cause::Terminated, until);
        }
    }

    fn drain(&mut self, successor: Option<Peer>, cause: Cause, until: Moment) {
        let round = self.round();
        let Phase::Owner(owner) = &mut self.phase else { return };
        owner.leaving = Leaving::Draining(Drain { round, successor, cause, until });
        let name = successor.and_then(|peer| owner.peers.get(&peer)).map(|standby| standby.name.clone());
        self.note(Note::Drains { successor: name });
        self.put(Effect::Drain { round });
    }

    pub(super) fn drained(&mut self, round: Round) {
        if let Phase::Owner(owner) = &mut self.phase
            && let Leaving::Draining(drain) = owner.leaving
            && drain.round == round
        {
            owner.leaving = Leaving::Flushing(drain);
            self.put(Effect::Flush { round });
        }
    }

    /// Flushed: a last look at the standby, since its end may not have been heard yet (T07).
    pub(super) fn flushed(&mut self, round: Round) {
        if let Phase::Owner(owner) = &mut self.phase
            && let Leaving::Flushing(drain) = owner.leaving
            && drain.round == round
        {
            match drain.successor {
                Some(peer) => {
                    owner.leaving = Leaving::Looking(drain);
                    self.put(Effect::LookAt { peer, round });
                }
                None => self.leave(drain),
            }
        }
    }

    pub(super) fn peer_seen(&mut self, peer: Peer, round: Round, presence: Presence) {
        if let Phase::Owner(owner) = &self.phase
            && let Leaving::Looking(drain) = owner.leaving
            && drain.round == round
            && drain.successor == Some(peer)
        {
            match presence {
                Presence::Here => {
                    self.put(Effect::ToStandby { peer, message: ToStandby::Yours });
                    self.leave(drain);
                }
                Presence::Gone => self.standby_gone(peer),
            }
        }
    }

    fn leave(&mut self, drain: Drain) {
        self.exit(match drain.cause {
            Cause::Terminated => Reason::Terminated,
            Cause::LockReplaced => Reason::LockReplaced,
        });
    }

    /// A standby is gone: another is asked, or the drain is taken back (T07).
    pub(super) fn leaving_without(&mut self, gone: Peer) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        match owner.leaving.clone() {
            Leaving::Asking { peer, asked, until, .. } if peer == gone => self.ask(asked, until),
            Leaving::Draining(drain) | Leaving::Flushing(drain) | Leaving::Looking(drain)
                if drain.successor == Some(gone) =>
            {
                self.without_successor(drain);
            }
            Leaving::No
            | Leaving::Waiting { .. }
            | Leaving::Asking { .. }
            | Leaving::Draining(_)
            | Leaving::Flushing(_)
            | Leaving::Looking(_) => {}
        }
    }

    fn without_successor(&mut self, drain: Drain) {
        let now = self.now;
        let Phase::Owner(owner) = &mut self.phase else { return };
        // Out of time, or without the lock: it goes on draining, for nobody.
        if drain.until <= now || drain.cause == Cause::LockReplaced {
            let drain = Drain { successor: None, ..drain };
            let looked = matches!(owner.leaving, Leaving::Looking(_));
            owner.leaving = match owner.leaving {
                Leaving::Draining(_) => Leaving::Draining(drain),
                Leaving::Flushing(_) | Leaving::Looking(_) => Leaving::Flushing(drain),
                Leaving::No | Leaving::Waiting { .. } | Leaving::Asking { .. } => return,
            };
            if looked {
                self.leave(drain);
            }
            return;
        }
        self.note(Note::TakesBack);
        self.put(Effect::TakeBack { round: drain.round });
        self.ask(BTreeSet::new(), drain.until);
    }

    /// The lock is none any more: drain and end, whatever else was under way (T01).
    pub(super) fn lock_replaced(&mut self) {
        let now = self.now;
        let Phase::Owner(owner) = &self.phase else { return };
        if owner.leaving.drain().is_none_or(|drain| drain.cause == Cause::Terminated) {
            self.note(Note::LockReplaced);
        }
        let Phase::Owner(owner) = &mut self.phase else { return };
        match &mut owner.leaving {
            Leaving::No | Leaving::Waiting { .. } | Leaving::Asking { .. } => {
                self.drain(None, Cause::LockReplaced, now);
            }
            Leaving::Draining(drain) | Leaving::Flushing(drain) | Leaving::Looking(drain) => {
                drain.cause = Cause::LockReplaced;
            }
        }
    }

    pub(super) fn leaving_time(&mut self) {
        let now = self.now;
        let Phase::Owner(owner) = &self.phase else { return };
        match owner.leaving.clone() {
            Leaving::Waiting { until } | Leaving::Asking { until, .. } if until <= now => {
                self.drain(None, Cause::Terminated, until);
            }
            Leaving::Asking { peer, answer_by, asked, until } if answer_by <= now => {
                let standby = owner.peers.get(&peer).map(|standby| standby.name.clone()).unwrap_or_default();
                self.note(Note::NotReady { standby });
                self.ask(asked, until);
            }
            Leaving::No
            | Leaving::Waiting { .. }
            | Leaving::Asking { .. }
            | Leaving::Draining(_)
            | Leaving::Flushing(_)
            | Leaving::Looking(_) => {}
        }
    }
}
