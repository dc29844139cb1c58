//! One behaviour at work: its machine, its instance, and the thread that calls it and performs what it staged.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::action::{Action, Outcome, Permit, Staged};
use crate::bindings::exports::aether::behaviour::lifecycle::Event;
use crate::deadline::Budget;
use crate::failure::{Failure, LoadError};
use crate::instance::{Instance, Planned, Surroundings, timed};
use crate::lifecycle::{Input, Machine, Role, State, Step};
use crate::limits::EVENTS_QUEUED;
use crate::manifest::{Mode, Name};
use crate::splice;
use crate::state::Shared;
use crate::status::{Source, Stats, Status};
use crate::version::SharedVersion;
use crate::world::World;

/// How long a behaviour that says `transient` waits until it is called again.
const TRANSIENT: Duration = Duration::from_secs(1);

/// After how long a behaviour hears what came of its action, where nothing else happens: it is told at once with
/// whatever does, and a module that asks for the same again each time does so at this pace.
const OUTCOME: Duration = Duration::from_millis(50);
/// The longest that it is after several actions in a row that were not done: each doubles it, so that a disk which is full,
/// or a grant that is missing, keeps no processor busy.
const OUTCOME_MAX: Duration = Duration::from_secs(10);

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

    /// Takes in what happened and does what the machine says, until it says nothing.
    fn drive(&self, inner: &mut Inner, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let before = inner.machine.state();
            let step = inner.machine.step(input, self.shared.now());
            if before != inner.machine.state() {
                self.say(before, inner.machine.state());
            }
            next = match step {
                Step::Rest => None,
                Step::Drop => {
                    inner.instance = None;
                    inner.due = None;
                    inner.events.clear();
                    None
                }
                Step::Instantiate => self.instantiate(inner),
                Step::Enable => self.enable(inner),
                Step::Disable => self.disable(inner),
            };
        }
    }

    fn say(&self, before: State, after: State) {
        self.surroundings.changed();
        let (module, before, after) = (&self.name, before.name(), after.name());
        tracing::info!(%module, from = before, to = after, "module");
    }

    fn instantiate(&self, inner: &mut Inner) -> Option<Input> {
        let version = inner.version.clone()?;
        match self.start(&version, inner.saved.as_deref()) {
            Ok(instance) => {
                inner.instance = Some(instance);
                Some(Input::Initialised)
            }
            Err(failure) => Some(self.failed(&failure)),
        }
    }

    fn start(&self, version: &SharedVersion, saved: Option<&[u8]>) -> Result<Instance, Failure> {
        Instance::start(
            &version.prepared,
            &self.shared,
            &self.surroundings,
            &version.manifest.settings,
            saved,
            Budget::ENDLESS,
        )
    }

    fn enable(&self, inner: &mut Inner) -> Option<Input> {
        let generation = self.surroundings.ownership.generation()?;
        match self.call(inner, |instance| instance.enable(generation))? {
            Ok(()) => Some(Input::Enabled),
            Err(input) => Some(input),
        }
    }

    fn disable(&self, inner: &mut Inner) -> Option<Input> {
        inner.due = None;
        inner.events.clear();
        let instance = inner.instance.as_mut()?;
        match instance.disable() {
            Ok(()) => None,
            Err(failure) => Some(self.failed(&failure)),
        }
    }

    fn run(&self, inner: &mut Inner) {
        let events: Vec<Event> = inner.events.drain(..).collect();
        inner.due = None;
        if let Some(Err(input)) = self.call(inner, |instance| instance.run(&events)) {
            self.drive(inner, input);
        }
    }

    /// Calls the instance, and takes its plan and what it staged.
    fn call(
        &self,
        inner: &mut Inner,
        call: impl FnOnce(&mut Instance) -> Result<Planned, Failure>,
    ) -> Option<Result<(), Input>> {
        let instance = inner.instance.as_mut()?;
        let (answer, took) = timed(|| call(instance));
        self.stats.call(took, instance.peak());
        Some(match answer {
            Ok(Planned { plan, staged }) => {
                inner.note = plan.note;
                let wake = plan.wake.map(|wake| Duration::from_millis(wake.into()));
                inner.due = wake.map(|wake| self.shared.now().saturating_add(wake));
                inner.staged.extend(staged);
                Ok(())
            }
            // No fault of the instance: it is asked again.
            Err(failure @ Failure::Transient { .. }) => {
                self.stats.failure(&failure);
                inner.note = failure.to_string();
                inner.due = Some(self.shared.now().saturating_add(TRANSIENT));
                Ok(())
            }
            Err(failure) => Err(self.failed(&failure)),
        })
    }

    fn failed(&self, failure: &Failure) -> Input {
        self.stats.failure(failure);
        tracing::warn!(module = %self.name, %failure, "a module failed");
        if matches!(failure, Failure::Config { .. }) { Input::Refused } else { Input::Fault }
    }

    /// Performs an action, after looking once more whether it may be (M03).
    fn perform(&self, staged: &Staged, version: Option<&SharedVersion>) -> Outcome {
        let permit = Permit { ownership: self.surroundings.ownership.clone(), generation: staged.generation };
        let Some(version) = version else {
            return Outcome::Dropped("the module is gone".to_owned());
        };
        if !permit.stands() {
            return Outcome::Dropped("the agent no longer owns the node as it did".to_owned());
        }
        if let Err(missing) = staged.action.covered(&version.manifest.grant) {
            return Outcome::Dropped(missing);
        }
        if let Action::ReplaceList { name, expect, bytes } = &staged.action
            && let Err(refused) = splice::check(&self.surroundings.ports.conflist(), name, expect, bytes)
        {
            return Outcome::Conflict(refused.to_string());
        }
        if version.manifest.mode == Mode::Audit {
            return Outcome::Dropped("the module is only audited".to_owned());
        }
        self.surroundings.ports.perform(&staged.action, &permit)
    }

    fn report(&self, inner: &mut Inner, staged: &Staged, outcome: &Outcome) {
        let action = staged.action.name();
        self.stats.action(action, outcome);
        let (module, what, detail) = (&self.name, outcome.name(), outcome.detail());
        if matches!(outcome, Outcome::Done(_)) {
            tracing::info!(%module, action, detail, "a module's action is done");
            (inner.undone, inner.said) = (0, None);
        } else {
            // Said once, not at each attempt.
            let now = Some((action, outcome.clone()));
            if inner.said != now {
                tracing::warn!(%module, action, outcome = what, detail, "a module's action is not done");
                inner.said = now;
            }
            inner.undone = inner.undone.saturating_add(1);
        }
        if inner.machine.state() == State::Enabled {
            let event = Event {
                kind: "outcome".to_owned(),
                about: what.to_owned(),
                detail: detail.to_owned(),
                ticket: Some(staged.ticket),
            };
            push(&mut inner.events, event);
            let soon = self.shared.now().saturating_add(pace(inner.undone));
            inner.due = Some(inner.due.map_or(soon, |due| due.min(soon)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A holder that panicked left an instance that may be in the middle of a call; wasmtime refuses to enter it
        // again, which the machine takes for a fault.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After how long a module hears what came of its action, after so many in a row that were not done.
fn pace(undone: u32) -> Duration {
    let doublings = undone.saturating_sub(1).min(16);
    OUTCOME.saturating_mul(1 << doublings).min(OUTCOME_MAX)
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
