//! With the lock, on the way to serving: T05's steps in their order, behind T06's and T08's look at who still listens.

use std::collections::BTreeMap;

use super::effect::{Effect, Reason};
use super::event::{Changes, Lock, Path, Sight};
use super::machine::Machine;
use super::message::{Role, ToOwner};
use super::moment::{Attach, Look, Moment};
use super::note::Note;
use super::phase::{Called, Came, Held, Owner, Phase, Stage, Taking, Waited};
use super::report::{Placed, Report, Step};
use super::standby::Said;
use super::{Identity, Socket};
use crate::limits::{FOREIGN_LISTENER_LOG, FOREIGN_LISTENER_POLL, GREETING_WAIT, LOCK_CHECK, TAKEOVER_RETRY};

/// The sockets of step (2). The CNI socket comes first: a takeover is as long as it is missed.
const FIRST: [Socket; 2] = [Socket::Cni, Socket::Handover];

impl Machine {
    pub(super) fn take_node(&mut self, came: Came, held: Option<Held>, since: Moment, said: Said) {
        let look = self.look();
        self.locked(came, held, since, said, Stage::Looking { look });
    }

    /// The lock, while the owner's connection still stands.
    pub(super) fn yield_to(&mut self, owner: Attach, held: Option<Held>) {
        let since = self.now;
        self.put(Effect::ToOwner { attach: owner, message: ToOwner::Locked });
        let again = self.now.after(LOCK_CHECK);
        self.locked(Came::Heir, held, since, Said::Nothing, Stage::Yielding { attach: owner, again });
    }

    fn locked(&mut self, came: Came, held: Option<Held>, since: Moment, said: Said, stage: Stage) {
        self.report = Report { locked: self.now, yours: said == Said::Yours, ..Report::default() };
        self.note(Note::Locked);
        if came == Came::Heir {
            self.done(Step::Lock, since);
        }
        let (stage_since, waited, called, failed) = (self.now, None, Called::No, None);
        self.phase = Phase::Taking(Taking { held, stage, stage_since, waited, came, called, failed });
    }

    pub(super) fn seen(&mut self, look: Look, sight: &Sight) {
        match &self.phase {
            Phase::Taking(taking) => match &taking.stage {
                Stage::Looking { look: asked } | Stage::Placing { look: asked } if *asked == look => {
                    self.weigh(sight);
                }
                Stage::Opening { look: asked, .. } if *asked == Some(look) => self.open_again(sight),
                Stage::Yielding { .. } if sight.lock == Lock::Replaced => self.exit(Reason::LockReplaced),
                Stage::Looking { .. }
                | Stage::Placing { .. }
                | Stage::Yielding { .. }
                | Stage::Foreign { .. }
                | Stage::Calling { .. }
                | Stage::Tombstones
                | Stage::Reconciling
                | Stage::Opening { .. }
                | Stage::Failed { .. } => {}
            },
            Phase::Owner(_) => self.owner_seen(look, sight),
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Ended => {}
        }
    }

    /// Decides by what the paths name: wait, ask, or go on (T06, T08).
    fn weigh(&mut self, sight: &Sight) {
        if sight.lock == Lock::Replaced {
            self.note(Note::LockReplaced);
            self.exit(Reason::LockReplaced);
            return;
        }
        let silent = matches!(&self.phase, Phase::Taking(Taking { called: Called::Silence, .. }));
        let live = FIRST.into_iter().find_map(|socket| match sight.path(socket) {
            Path::Live { pid } => Some((socket, pid)),
            Path::Ours | Path::Dead => None,
        });
        match (live, sight.path(Socket::Handover)) {
            (None, _) => self.go_on(sight),
            (Some(_), Path::Live { .. }) if silent => self.go_on(sight),
            (Some(_), Path::Live { .. }) => self.heir_calls(),
            (Some((socket, pid)), Path::Ours | Path::Dead) => {
                let again = self.now.after(FOREIGN_LISTENER_POLL);
                self.stage(Stage::Foreign { again });
                if let Some(waited) = self.say_waiting() {
                    self.note(Note::ForeignListener { socket, pid, waited });
                }
            }
        }
    }

    /// Nobody listens who must be waited for: tombstones (1), or, when they are applied already, serve (2).
    fn go_on(&mut self, sight: &Sight) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        if !matches!(taking.stage, Stage::Placing { .. }) {
            self.begin_steps();
            return;
        }
        let held = taking.held.clone();
        let xds = sight.path(Socket::Xds);
        self.stage(Stage::Opening { open: BTreeMap::new(), xds, again: None, look: None });
        for socket in FIRST {
            self.place(socket, sight.path(socket), held.as_ref());
        }
    }

    /// The CNI socket could not be served before; whatever the path names now, no foreign listener is replaced.
    fn open_again(&mut self, sight: &Sight) {
        let later = self.now.after(TAKEOVER_RETRY);
        let Phase::Taking(taking) = &mut self.phase else { return };
        let Stage::Opening { again, xds, .. } = &mut taking.stage else { return };
        // What is seen now counts for it too: it is placed once the CNI socket is served.
        *xds = sight.path(Socket::Xds);
        match (sight.lock, sight.path(Socket::Cni), taking.called) {
            (Lock::Replaced, _, _) => self.exit(Reason::LockReplaced),
            (Lock::Ours, Path::Live { pid }, Called::No) => {
                *again = Some(later);
                if let Some(waited) = self.say_waiting() {
                    self.note(Note::ForeignListener { socket: Socket::Cni, pid, waited });
                }
            }
            (Lock::Ours, Path::Live { .. }, Called::Silence)
            | (Lock::Ours, Path::Dead | Path::Ours, Called::No | Called::Silence) => {
                self.place(Socket::Cni, Path::Dead, None);
            }
        }
    }

    fn begin_steps(&mut self) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        let since = taking.waited.take().map_or(taking.stage_since, |waited| waited.since);
        // What an attempt before this one did is done again.
        self.report.steps.retain(|(step, _)| *step == Step::Lock);
        self.report.tombstones = 0;
        self.done(Step::Paths, since);
        self.stage(Stage::Tombstones);
        self.put(Effect::ApplyTombstones);
    }

    /// Serves `socket` on the duplicate where the path still names it, else binds anew; each path by itself (T13).
    pub(super) fn place(&mut self, socket: Socket, path: Path, held: Option<&Held>) {
        let duplicate = held.filter(|held| path == Path::Ours && held.has(socket));
        let how = if let Some(held) = duplicate {
            self.put(Effect::Listen { socket, batch: held.batch });
            Placed::HandedOver
        } else {
            self.put(Effect::Bind { socket });
            Placed::Bound
        };
        self.report.placed.retain(|(placed, _)| *placed != socket);
        self.report.placed.push((socket, how));
    }

    /// Something listens on `handover.sock` too: a standby's duplicate, which never greets, or an owner whose lock file
    /// was removed by hand.
    fn heir_calls(&mut self) {
        let attach = self.attach();
        self.stage(Stage::Calling { attach, until: self.now.after(GREETING_WAIT) });
        let hello = self.hello(Role::Heir);
        self.put(Effect::Attach { attach, hello });
    }

    pub(super) fn heir_greeted(&mut self, attach: Attach) {
        if !matches!(&self.phase, Phase::Taking(Taking { stage: Stage::Calling { .. }, .. })) {
            return;
        }
        let again = self.now.after(LOCK_CHECK);
        self.stage(Stage::Yielding { attach, again });
        if let Some(waited) = self.say_waiting() {
            self.note(Note::OwnerWithoutLock { waited });
        }
    }

    /// The call found nobody, or its other side has ended: look again.
    pub(super) fn heir_call_failed(&mut self, of: Attach) {
        let Phase::Taking(taking) = &self.phase else { return };
        match taking.stage {
            Stage::Calling { attach, .. } | Stage::Yielding { attach, .. } if attach == of => {
                self.start_over();
            }
            Stage::Calling { .. }
            | Stage::Yielding { .. }
            | Stage::Looking { .. }
            | Stage::Foreign { .. }
            | Stage::Tombstones
            | Stage::Reconciling
            | Stage::Placing { .. }
            | Stage::Opening { .. }
            | Stage::Failed { .. } => {}
        }
    }

    pub(super) fn tombstones_applied(&mut self, applied: usize) {
        if let Phase::Taking(Taking { stage: Stage::Tombstones, stage_since, .. }) = self.phase {
            self.report.tombstones += applied;
            self.done(Step::Tombstones, stage_since);
            self.stage(Stage::Reconciling);
            self.put(Effect::Reconcile);
        }
    }

    pub(super) fn reconciled(&mut self, changes: Changes) {
        if let Phase::Taking(Taking { stage: Stage::Reconciling, stage_since, .. }) = self.phase {
            self.report.changes = changes;
            self.done(Step::Reconcile, stage_since);
            let look = self.look();
            self.stage(Stage::Placing { look });
        }
    }

    /// A socket is served: with the CNI socket this agent is the owner.
    pub(super) fn serving(&mut self, socket: Socket, identity: Identity) {
        match &mut self.phase {
            Phase::Taking(taking) => {
                let since = taking.stage_since;
                let Stage::Opening { open, xds, .. } = &mut taking.stage else { return };
                open.insert(socket, identity);
                let (open, xds) = (open.clone(), *xds);
                self.say_serving(socket);
                if socket == Socket::Cni {
                    self.done(Step::Serve, since);
                    self.own(open, xds);
                }
            }
            Phase::Owner(_) => self.owner_serving(socket, identity),
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Ended => {}
        }
    }

    pub(super) fn say_serving(&mut self, socket: Socket) {
        if let Some((_, how)) = self.report.placed.iter().find(|(placed, _)| *placed == socket) {
            let how = *how;
            self.note(Note::Serves { socket, how });
        }
    }

    fn own(&mut self, open: BTreeMap<Socket, Identity>, xds: Path) {
        let Phase::Taking(taking) = &mut self.phase else { return };
        let held = taking.held.take();
        let mut owner = Owner::new(open, held, self.now.after(LOCK_CHECK));
        let missing = FIRST.into_iter().filter(|socket| !owner.listeners.contains_key(socket));
        owner.opening = missing.collect();
        self.phase = Phase::Owner(owner);
        self.settle(xds);
    }

    pub(super) fn step_failed(&mut self, step: Step) {
        let Phase::Taking(taking) = &self.phase else { return };
        let fits = match taking.stage {
            Stage::Tombstones => step == Step::Tombstones,
            Stage::Reconciling => step == Step::Reconcile,
            Stage::Looking { .. }
            | Stage::Foreign { .. }
            | Stage::Calling { .. }
            | Stage::Yielding { .. }
            | Stage::Placing { .. }
            | Stage::Opening { .. }
            | Stage::Failed { .. } => false,
        };
        if fits {
            self.fail(step);
            self.stage(Stage::Failed { again: self.now.after(TAKEOVER_RETRY) });
        }
    }

    fn fail(&mut self, step: Step) {
        if let Phase::Taking(taking) = &mut self.phase {
            taking.failed = Some(step);
        }
        self.note(Note::Failed { step });
    }

    pub(super) fn open_failed(&mut self, socket: Socket) {
        let retry = self.now.after(TAKEOVER_RETRY);
        match &mut self.phase {
            Phase::Taking(taking) => {
                if let Stage::Opening { again, .. } = &mut taking.stage
                    && socket == Socket::Cni
                {
                    *again = Some(retry);
                    self.fail(Step::Serve);
                }
            }
            // The next look at the paths finds it missing and binds it again.
            Phase::Owner(owner) => {
                owner.opening.remove(&socket);
            }
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Ended => {}
        }
    }

    pub(super) fn taking_time(&mut self) {
        let now = self.now;
        let Phase::Taking(taking) = &mut self.phase else { return };
        match &mut taking.stage {
            Stage::Foreign { again } | Stage::Failed { again } if *again <= now => self.start_over(),
            Stage::Calling { attach, until } if *until <= now => {
                // Nobody greets: it is only a standby's duplicate, and is renamed over (T08).
                let attach = *attach;
                taking.called = Called::Silence;
                self.put(Effect::Detach { attach });
                self.begin_steps();
            }
            Stage::Yielding { again, .. } if *again <= now => {
                *again = now.after(LOCK_CHECK);
                self.look();
                if let Some(waited) = self.say_waiting() {
                    self.note(Note::OwnerWithoutLock { waited });
                }
            }
            Stage::Opening { again, .. } if again.is_some_and(|again| again <= now) => {
                *again = None;
                let asked = self.look();
                if let Phase::Taking(Taking { stage: Stage::Opening { look, .. }, .. }) = &mut self.phase {
                    *look = Some(asked);
                }
            }
            Stage::Foreign { .. }
            | Stage::Failed { .. }
            | Stage::Calling { .. }
            | Stage::Yielding { .. }
            | Stage::Opening { .. }
            | Stage::Looking { .. }
            | Stage::Tombstones
            | Stage::Reconciling
            | Stage::Placing { .. } => {}
        }
    }

    pub(super) fn start_over(&mut self) {
        if let Phase::Taking(taking) = &mut self.phase {
            taking.called = Called::No;
        }
        let look = self.look();
        self.stage(Stage::Looking { look });
    }

    fn stage(&mut self, stage: Stage) {
        if let Phase::Taking(taking) = &mut self.phase {
            taking.stage = stage;
            taking.stage_since = self.now;
        }
    }

    /// How long has been waited, when it is time to say so.
    fn say_waiting(&mut self) -> Option<std::time::Duration> {
        let now = self.now;
        let Phase::Taking(taking) = &mut self.phase else { return None };
        let first = taking.waited.is_none();
        let waited = taking.waited.get_or_insert(Waited { since: now, said: now });
        if !first && now.since(waited.said) < FOREIGN_LISTENER_LOG {
            return None;
        }
        waited.said = now;
        Some(now.since(waited.since))
    }
}
