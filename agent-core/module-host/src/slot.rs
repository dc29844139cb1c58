//! One behaviour at work: its machine, its instance, and the thread that calls it and performs what it staged. `calls` does
//! what the machine says, `hands` what the module staged.

mod calls;
mod hands;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::action::{Outcome, Staged};
use crate::bindings::exports::aether::behaviour::lifecycle::Event;
use crate::failure::LoadError;
use crate::instance::{Instance, Surroundings};
use crate::lifecycle::{Input, Machine, Role, State};
use crate::limits::EVENTS_QUEUED;
use crate::manifest::{Mode, Name};
use crate::state::Shared;
use crate::status::{Source, Stats, Status};
use crate::version::SharedVersion;
use crate::world::World;

/// A behaviour.
pub(crate) struct Slot {
    pub(crate) name: Name,
    pub(crate) world: World,
    shared: Arc<Shared>,
    stats: Arc<Stats>,
    surroundings: Surroundings,
    inner: Mutex<Inner>,
    wake: Condvar,
    /// An action was performed.
    performed: Condvar,
}

struct Inner {
    machine: Machine,
    version: Option<SharedVersion>,
    instance: Option<Instance>,
    events: VecDeque<Event>,
    staged: VecDeque<Staged>,
    /// The thread performs one that it has taken out.
    performing: bool,
    /// When the module wants to be called again, on the host's clock.
    due: Option<Duration>,
    note: String,
    problem: String,
    saved: Option<Vec<u8>>,
    ending: Ending,
    /// How many actions in a row were not done.
    undone: u32,
    /// What was said last of an action that was not done.
    said: Option<(&'static str, Outcome)>,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It has not begun.
    No,
    /// What is staged is still performed.
    Draining,
}

impl Slot {
    pub(crate) fn new(
        name: Name,
        world: World,
        shared: Arc<Shared>,
        role: Role,
        surroundings: Surroundings,
    ) -> Arc<Self> {
        let inner = Inner {
            machine: Machine::new(role),
            version: None,
            instance: None,
            events: VecDeque::new(),
            staged: VecDeque::new(),
            performing: false,
            due: None,
            note: String::new(),
            problem: String::new(),
            saved: None,
            ending: Ending::No,
            undone: 0,
            said: None,
        };
        let (inner, wake, performed) = (Mutex::new(inner), Condvar::new(), Condvar::new());
        Arc::new(Self { name, world, shared, stats: Arc::default(), surroundings, inner, wake, performed })
    }

    /// Takes a version, if an instance of it starts; else what runs goes on, and the error says why.
    pub(crate) fn replace(&self, version: SharedVersion) -> Result<(), LoadError> {
        let mut inner = self.lock();
        // A version that cannot be asked any more keeps what it saved last.
        let saved = inner.instance.as_mut().and_then(|old| old.save().ok().flatten());
        let saved = saved.or_else(|| inner.saved.take());
        let started = self.start(&version, saved.as_deref());
        inner.saved = saved;
        match started {
            Ok(instance) => {
                if inner.machine.state() == State::Enabled
                    && let Some(old) = inner.instance.as_mut()
                {
                    // It is on its way out: that it fails at that changes nothing.
                    let _ = old.disable();
                }
                inner.version = Some(version);
                inner.instance = Some(instance);
                inner.problem.clear();
                inner.note.clear();
                inner.due = None;
                self.stats.load();
                // The instance that the machine asks for is there already.
                let _ = inner.machine.step(Input::Replaced, self.shared.now());
                self.drive(&mut inner, Input::Initialised);
                self.wake.notify_all();
                Ok(())
            }
            Err(failure) => {
                self.stats.failure(&failure);
                if inner.instance.is_none() && inner.version.is_none() {
                    self.drive(&mut inner, Input::Refused);
                }
                Err(LoadError::Trial(failure))
            }
        }
    }

    /// Whether a version of it was ever taken.
    pub(crate) fn has_version(&self) -> bool {
        self.lock().version.is_some()
    }

    /// Says what is wrong with the module's files while another version runs, or none.
    pub(crate) fn problem(&self, text: String) {
        let mut inner = self.lock();
        if inner.version.is_none() {
            self.drive(&mut inner, Input::Refused);
        }
        inner.problem = text;
    }

    /// The agent owns the node, or does no longer.
    pub(crate) fn own(&self, role: Role) {
        let mut inner = self.lock();
        self.drive(&mut inner, if role == Role::Owner { Input::Owns } else { Input::Lost });
        self.wake.notify_all();
    }

    /// Something happened. Told only while enabled: a module looks for itself when it is enabled.
    pub(crate) fn notify(&self, event: Event) {
        let mut inner = self.lock();
        if inner.machine.state() != State::Enabled {
            return;
        }
        push(&mut inner.events, event);
        self.wake.notify_all();
    }

    /// Begins the end: the module is told, and what it stages is still performed.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        self.tell_stopping(&mut inner);
        inner.ending = Ending::Draining;
        self.wake.notify_all();
    }

    /// Tells the module that the agent stops, and waits until what it has staged is performed. It goes on: the stop may be
    /// taken back (T07).
    pub(crate) fn flush(&self) {
        let mut inner = self.lock();
        self.tell_stopping(&mut inner);
        self.wake.notify_all();
        while inner.performing || !inner.staged.is_empty() {
            inner = self.performed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it does nothing at this moment.
    pub(crate) fn is_still(&self) -> bool {
        self.inner.try_lock().is_ok_and(|inner| !inner.performing)
    }

    fn tell_stopping(&self, inner: &mut Inner) {
        if inner.machine.state() == State::Enabled {
            let stopping = Event {
                kind: "stopping".to_owned(),
                about: String::new(),
                detail: String::new(),
                ticket: None,
            };
            inner.events.push_back(stopping);
            self.run(inner);
        }
    }

    /// Works until the end: the body of the module's thread.
    pub(crate) fn work(&self) {
        let mut inner = self.lock();
        loop {
            if let Some(staged) = inner.staged.pop_front() {
                let version = inner.version.clone();
                inner.performing = true;
                drop(inner);
                let outcome = self.perform(&staged, version.as_ref());
                inner = self.lock();
                inner.performing = false;
                self.report(&mut inner, &staged, &outcome);
                self.performed.notify_all();
                continue;
            }
            if inner.ending == Ending::Draining {
                return;
            }
            let now = self.shared.now();
            self.drive(&mut inner, Input::Tick);
            if !inner.staged.is_empty() {
                // A new instance after a fault has looked when it was enabled.
                continue;
            }
            let enabled = inner.machine.state() == State::Enabled;
            let news = inner.events.iter().any(|event| event.ticket.is_none());
            if enabled && (news || inner.due.is_some_and(|due| due <= now)) {
                self.run(&mut inner);
                continue;
            }
            let until = match inner.machine.state() {
                State::Enabled => inner.due,
                State::Faulted { retry_at } => Some(retry_at),
                State::Loaded | State::Disabled | State::Quarantined | State::Rejected => None,
            };
            inner = match until {
                None => self.wake.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let wait = until.saturating_sub(self.shared.now());
                    self.wake.wait_timeout(inner, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(crate) fn status(&self) -> Status {
        let inner = self.lock();
        let (counts, last_error) = self.stats.read();
        let (dropped, series) = self.shared.talk(|talk| (talk.lines.dropped(), talk.series.clone()));
        let version = inner.version.as_ref();
        Status {
            name: self.name.clone(),
            world: self.world.name(),
            state: inner.machine.state().name(),
            source: version.map_or(Source::Operator, |version| version.source),
            version: version.map(|version| version.manifest.version.clone()).unwrap_or_default(),
            digest: version.map(|version| version.digest.clone()).unwrap_or_default(),
            mode: version.map_or(Mode::Enforce, |version| version.manifest.mode).name(),
            on_failure: "",
            problem: inner.problem.clone(),
            note: inner.note.clone(),
            last_error,
            counts,
            log_lines_dropped: dropped,
            series,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A holder that panicked left an instance that may be in the middle of a call; wasmtime refuses to enter it
        // again, which the machine takes for a fault.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Queues an event. One `changed` of a package says it all; where the queue is full the oldest goes, since every event
/// only means: look again.
fn push(events: &mut VecDeque<Event>, event: Event) {
    let same =
        |queued: &Event| event.ticket.is_none() && queued.kind == event.kind && queued.about == event.about;
    if events.iter().any(same) {
        return;
    }
    if events.len() >= EVENTS_QUEUED {
        events.pop_front();
    }
    events.push_back(event);
}
