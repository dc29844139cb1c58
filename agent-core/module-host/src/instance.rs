//! One instance and its calls, each under a deadline and a limit of memory (M04).

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{Store, Trap, UpdateDeadline};

use crate::action::{Ownership, Staged};
use crate::bindings::aether::base::types::{Context, Fault};
use crate::bindings::exports::aether::behaviour::lifecycle::{self, Event, Plan};
use crate::bindings::exports::aether::policy::pods::{self, Pod};
use crate::capability::cut;
use crate::deadline::{Budget, Deadline};
use crate::engine::Runtime;
use crate::failure::Failure;
use crate::limits::{SAVED_MAX, TEXT_MAX};
use crate::ports::Ports;
use crate::prepared::{Exports, Prepared};
use crate::state::{Shared, State};
use crate::ticker::ticks;

/// What the engine says when a guest hands over more than it may; it has no type for that.
const TOO_MUCH: &str = "fuel allocated for hostcalls has been exhausted";

/// What every instance of an agent has in common.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) ports: Arc<dyn Ports>,
    pub(crate) ownership: Ownership,
    pub(crate) context: Arc<Context>,
}

/// One instance. After a trap it answers nothing more, and is replaced.
pub(crate) struct Instance {
    store: Store<State>,
    guest: Guest,
    surroundings: Surroundings,
    broken: bool,
}

enum Guest {
    Behaviour(lifecycle::Guest),
    Policy(pods::Guest),
}

/// What a call of a behaviour came to: its plan, and what it staged.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) plan: Plan,
    pub(crate) staged: Vec<Staged>,
}

impl Instance {
    /// Instantiates and initialises, within what is left of the budget.
    pub(crate) fn start(
        prepared: &Prepared,
        shared: &Arc<Shared>,
        surroundings: &Surroundings,
        settings: &str,
        saved: Option<&[u8]>,
        budget: Budget,
    ) -> Result<Self, Failure> {
        let limits = prepared.limits.clone();
        // Instantiation runs start functions: it has its deadline too.
        let deadline = Deadline::new(limits.init, budget);
        let state = State {
            shared: shared.clone(),
            grant: prepared.grant.clone(),
            limits: limits.clone(),
            ports: surroundings.ports.clone(),
            ownership: surroundings.ownership.clone(),
            deadline,
            staged: Vec::new(),
            peak: 0,
            refused_growth: None,
            last_error: None,
        };
        let mut store = Store::new(&surroundings.runtime.engine, state);
        store.limiter(|state| state);
        store.set_hostcall_fuel(limits.result);
        store.epoch_deadline_callback(|context| {
            Ok(match context.data().deadline.left() {
                Some(left) => UpdateDeadline::Continue(ticks(left)),
                None => UpdateDeadline::Interrupt,
            })
        });
        store.set_epoch_deadline(ticks(deadline.left().unwrap_or_default()));
        let guest = {
            let _running = surroundings.runtime.ticker.run();
            prepared.pre.instantiate(&mut store).and_then(|instance| {
                Ok(match &prepared.exports {
                    Exports::Behaviour(indices) => Guest::Behaviour(indices.load(&mut store, &instance)?),
                    Exports::Policy(indices) => Guest::Policy(indices.load(&mut store, &instance)?),
                })
            })
        };
        let guest =
            guest.map_err(|error| failure(&mut store, &error, "instantiation", limits.init, "init-ms"))?;
        let mut instance = Self { store, guest, surroundings: surroundings.clone(), broken: false };
        instance.init(settings, saved, budget)?;
        Ok(instance)
    }

    fn init(&mut self, settings: &str, saved: Option<&[u8]>, budget: Budget) -> Result<(), Failure> {
        let context = self.surroundings.context.clone();
        let limit = self.store.data().limits.init;
        let answer = self.call("init", limit, "init-ms", budget, |guest, store| match guest {
            Guest::Behaviour(guest) => guest.call_init(store, &context, settings, saved),
            Guest::Policy(guest) => guest.call_init(store, &context, settings),
        })?;
        answer.map_err(|fault| said("init", fault))
    }

    /// Calls `enable`.
    pub(crate) fn enable(&mut self, generation: u64) -> Result<Planned, Failure> {
        self.planned("enable", |guest, store| guest.call_enable(store, generation))
    }

    /// Calls `run`.
    pub(crate) fn run(&mut self, events: &[Event]) -> Result<Planned, Failure> {
        self.planned("run", |guest, store| guest.call_run(store, events))
    }

    /// Calls `disable`.
    pub(crate) fn disable(&mut self) -> Result<(), Failure> {
        self.behaviour("disable", |guest, store| guest.call_disable(store)).map(Option::unwrap_or_default)
    }

    /// Calls `save`; what is too large is not kept.
    pub(crate) fn save(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        let saved = self.behaviour("save", |guest, store| guest.call_save(store))?.flatten();
        Ok(saved.filter(|saved| saved.len() <= SAVED_MAX))
    }

    /// Calls `evaluate`, within what is left of the budget.
    pub(crate) fn evaluate(&mut self, pod: &Pod, budget: Budget) -> Result<pods::Verdict, Failure> {
        let limit = self.store.data().limits.call;
        self.call("evaluate", limit, "call-ms", budget, |guest, store| match guest {
            Guest::Policy(guest) => guest.call_evaluate(store, pod),
            Guest::Behaviour(_) => Ok(Ok(pods::Verdict::Abstain)),
        })?
        .map_err(|fault| said("evaluate", fault))
    }

    /// The largest linear memory so far, in bytes.
    pub(crate) fn peak(&self) -> usize {
        self.store.data().peak
    }

    /// Whether it answers no more.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    fn planned(
        &mut self,
        export: &'static str,
        call: impl FnOnce(&lifecycle::Guest, &mut Store<State>) -> wasmtime::Result<Result<Plan, Fault>>,
    ) -> Result<Planned, Failure> {
        let nothing = || Ok(Plan { wake: None, note: String::new() });
        let answer = self.behaviour(export, call)?.unwrap_or_else(nothing);
        let staged = std::mem::take(&mut self.store.data_mut().staged);
        match answer {
            Ok(plan) => {
                let note = cut(&plan.note, TEXT_MAX).to_owned();
                Ok(Planned { plan: Plan { note, ..plan }, staged })
            }
            Err(fault) => Err(said(export, fault)),
        }
    }

    fn behaviour<R>(
        &mut self,
        export: &'static str,
        call: impl FnOnce(&lifecycle::Guest, &mut Store<State>) -> wasmtime::Result<R>,
    ) -> Result<Option<R>, Failure> {
        let limit = self.store.data().limits.call;
        self.call(export, limit, "call-ms", Budget::ENDLESS, |guest, store| match guest {
            Guest::Behaviour(guest) => call(guest, store).map(Some),
            Guest::Policy(_) => Ok(None),
        })
    }

    fn call<R>(
        &mut self,
        export: &'static str,
        limit: Duration,
        key: &'static str,
        budget: Budget,
        call: impl FnOnce(&Guest, &mut Store<State>) -> wasmtime::Result<R>,
    ) -> Result<R, Failure> {
        if self.broken {
            let cause = "this instance trapped before".to_owned();
            return Err(Failure::Trap { export, said: None, cause });
        }
        self.store.data_mut().staged.clear();
        let deadline = Deadline::new(limit, budget);
        self.store.data_mut().deadline = deadline;
        self.store.set_epoch_deadline(ticks(deadline.left().unwrap_or_default()));
        let answer = {
            let _running = self.surroundings.runtime.ticker.run();
            call(&self.guest, &mut self.store)
        };
        answer.map_err(|error| {
            self.broken = true;
            self.store.data_mut().staged.clear();
            failure(&mut self.store, &error, export, limit, key)
        })
    }
}

fn said(export: &'static str, fault: Fault) -> Failure {
    match fault {
        Fault::Config(text) => Failure::Config { export, text: cut(&text, TEXT_MAX).to_owned() },
        Fault::Transient(text) => Failure::Transient { export, text: cut(&text, TEXT_MAX).to_owned() },
    }
}

fn failure(
    store: &mut Store<State>,
    error: &wasmtime::Error,
    export: &'static str,
    limit: Duration,
    key: &'static str,
) -> Failure {
    let state = store.data_mut();
    if matches!(error.downcast_ref::<Trap>(), Some(Trap::Interrupt)) {
        let shared = state.deadline.is_budget_over();
        return if shared { Failure::OutOfTime { export } } else { Failure::Deadline { export, limit, key } };
    }
    let cause = error.root_cause().to_string();
    if cause.contains(TOO_MUCH) {
        return Failure::Result { export, limit: state.limits.result };
    }
    // A refused growth is no trap: the guest's allocator gives up a moment later.
    if let Some(asked) = state.refused_growth.take() {
        return Failure::Memory { export, asked };
    }
    // The cause comes first: where the stack is overrun, a trace alone is longer than what is kept.
    let trace = error.to_string();
    let text = if trace == cause { cause } else { format!("{cause}: {trace}") };
    Failure::Trap { export, said: state.last_error.take(), cause: cut(&text, TEXT_MAX).to_owned() }
}

/// Times something.
pub(crate) fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let began = Instant::now();
    let done = work();
    (done, began.elapsed())
}
