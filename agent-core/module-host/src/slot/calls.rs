//! What the machine says, done: an instance made, enabled, called, disabled.

use std::time::Duration;

use super::{Inner, Slot};
use crate::bindings::exports::aether::behaviour::lifecycle::Event;
use crate::deadline::Budget;
use crate::failure::Failure;
use crate::instance::{Instance, Planned, timed};
use crate::lifecycle::{Input, State, Step};
use crate::version::SharedVersion;

/// How long a behaviour that says `transient` waits until it is called again.
const TRANSIENT: Duration = Duration::from_secs(1);

impl Slot {
    /// Takes in what happened and does what the machine says, until it says nothing.
    pub(super) fn drive(&self, inner: &mut Inner, input: Input) {
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
        self.surroundings.ports.behaviours_changed();
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

    pub(super) fn start(&self, version: &SharedVersion, saved: Option<&[u8]>) -> Result<Instance, Failure> {
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

    pub(super) fn run(&self, inner: &mut Inner) {
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
}
