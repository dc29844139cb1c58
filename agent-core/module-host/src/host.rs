//! All modules of an agent: loading, the takeover, the question at ADD, reload.

mod operators;

pub use operators::{Looked, Rescanned, What};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aether_domain::text::error_chain;

use crate::action::Ownership;
use crate::bindings::aether::base::types::Context;
use crate::bindings::exports::aether::behaviour::lifecycle::Event;
use crate::cache::{Cache, CacheError};
use crate::compiler::Compiler;
use crate::deadline::Budget;
use crate::engine::{EngineError, Runtime};
use crate::instance::Surroundings;
use crate::lifecycle::{Role, State};
use crate::limits::Limits;
use crate::manifest::{Manifest, Mode, Name};
use crate::pod::Pod;
use crate::policy::Policy;
use crate::ports::Ports;
use crate::slot::Slot;
use crate::state::Shared;
use crate::status::{Source, Status};
use crate::verdict::{Decision, Vote, merge};
use crate::version::{Builtin, Version};
use crate::world::World;

/// What the host is told once.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node's name.
    pub node: String,
    /// The agent's version.
    pub agent_version: String,
    /// The directory of operator modules; none are taken without one.
    pub directory: Option<PathBuf>,
    /// The folder of compiled modules.
    pub cache: PathBuf,
    /// Namespaces whose pods no policy is asked about: the agent's own and `kube-system`, so that a broken policy
    /// cannot stop its own cure.
    pub exempt: BTreeSet<String>,
    /// The time of all policies together at one ADD: [`crate::limits::ADD_BUDGET`] where nothing else is configured.
    pub budget: Duration,
}

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// There is no engine.
    #[error("cannot start the host of modules")]
    Engine(#[source] EngineError),
    /// There is no cache.
    #[error("cannot start the host of modules")]
    Cache(#[source] CacheError),
    /// A thread cannot be started.
    #[error("cannot start the thread of module {name}")]
    Thread {
        /// The module.
        name: Name,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A built-in module has a manifest that is not taken: a fault of the build.
    #[error("the built-in module {name} is not valid")]
    Builtin {
        /// The module.
        name: &'static str,
        /// Why.
        #[source]
        source: crate::manifest::ManifestError,
    },
}

/// What the policies say about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// What is to be done.
    pub decision: Decision,
    /// Each policy's answer, audited ones included, in order; empty for exempt namespaces.
    pub votes: Vec<Vote>,
}

/// All modules of an agent. Every function blocks for as long as it says; none needs a runtime.
pub struct Host {
    config: Config,
    builtins: Vec<(Name, Builtin, Manifest)>,
    surroundings: Surroundings,
    cache: Cache,
    compiler: Arc<dyn Compiler>,
    began: Instant,
    /// Behaviours; an entry's thread ends with [`Host::stop`].
    slots: Mutex<BTreeMap<Name, Arc<Slot>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Policies in their order: swapped as a whole, so that a call sees one state of them.
    policies: RwLock<Arc<Vec<Arc<Policy>>>>,
    /// Held while modules are compiled.
    operators: Mutex<operators::Loaded>,
    /// What is in the directory and no module. Never held for long.
    problems: Mutex<Vec<String>>,
}

impl Host {
    /// Loads the built-in modules and gets them ready: compiled, instantiated, initialised, disabled. The operator's
    /// are loaded by [`Host::rescan`].
    pub fn new(
        config: Config,
        builtins: &[Builtin],
        ports: Arc<dyn Ports>,
        compiler: Arc<dyn Compiler>,
    ) -> Result<Self, HostError> {
        let runtime = Arc::new(Runtime::new().map_err(HostError::Engine)?);
        let cache = Cache::open(&config.cache).map_err(HostError::Cache)?;
        let context = Arc::new(Context {
            node: config.node.clone(),
            agent_version: config.agent_version.clone(),
            extra: Vec::new(),
        });
        let surroundings = Surroundings { runtime, ports, ownership: Ownership::default(), context };
        let builtins = builtins.iter().map(parsed).collect::<Result<Vec<_>, _>>()?;
        let host = Self {
            config,
            builtins,
            surroundings,
            cache,
            compiler,
            began: Instant::now(),
            slots: Mutex::default(),
            threads: Mutex::default(),
            policies: RwLock::default(),
            operators: Mutex::default(),
            problems: Mutex::default(),
        };
        for (name, builtin, manifest) in &host.builtins {
            let slot = host.slot(name, manifest.world, &manifest.limits)?;
            host.load_builtin(&slot, builtin, manifest);
        }
        Ok(host)
    }

    /// Whether every built-in module, or what replaces it, is ready to be enabled; the error says which are not. Only
    /// these gate Ready (M08).
    pub fn builtins_ready(&self) -> Result<(), String> {
        let slots = lock(&self.slots);
        let unready = self.builtins.iter().filter_map(|(name, ..)| {
            let status = slots.get(name)?.status();
            let ready = [State::Disabled.name(), State::Enabled.name()].contains(&status.state);
            let why = if status.problem.is_empty() { status.last_error } else { status.problem };
            (!ready).then(|| format!("module {name} is {}: {why}", status.state))
        });
        let unready: Vec<String> = unready.collect();
        if unready.is_empty() { Ok(()) } else { Err(unready.join("; ")) }
    }

    /// Who owns the node, for whoever performs actions.
    pub fn ownership(&self) -> &Ownership {
        &self.surroundings.ownership
    }

    /// The agent owns the node from now on: `generation` is higher than any before on this node. Enables every
    /// behaviour and returns how long each took. What they stage is performed on their own threads.
    pub fn take_over(&self, generation: u64) -> Vec<(Name, Duration)> {
        self.surroundings.ownership.take(generation);
        let mut slots: Vec<Arc<Slot>> = lock(&self.slots).values().cloned().collect();
        slots.sort_by_key(|slot| World::ALL.iter().position(|world| *world == slot.world));
        let enable = |slot: Arc<Slot>| {
            let ((), took) = crate::instance::timed(|| slot.own(Role::Owner));
            (slot.name.clone(), took)
        };
        slots.into_iter().map(enable).collect()
    }

    /// The agent does not own the node any more: no effect is accepted from here on.
    pub fn lose(&self) {
        self.surroundings.ownership.lose();
        for slot in lock(&self.slots).values() {
            slot.own(Role::Standby);
        }
    }

    /// The agent hands the node on: no effect is accepted from here on. Whether none is under way either; does not wait for one.
    pub fn hand_on(&self) -> bool {
        self.surroundings.ownership.lose();
        lock(&self.slots).values().all(|slot| slot.is_still())
    }

    /// Something that modules look at has changed: `about` is the package of the view, `aether:conflist` for example.
    pub fn notify(&self, about: &str, detail: &str) {
        for slot in lock(&self.slots).values() {
            slot.notify(Event {
                kind: "changed".to_owned(),
                about: about.to_owned(),
                detail: detail.to_owned(),
                ticket: None,
            });
        }
    }

    /// Asks every policy about a pod, on the calling thread, for at most [`Config::budget`] and a little: a policy's
    /// instantiation and `init` are within it.
    pub fn evaluate(&self, pod: &Pod) -> Evaluated {
        if self.config.exempt.contains(&pod.namespace) {
            return Evaluated { decision: Decision::Admit { changes: Vec::new() }, votes: Vec::new() };
        }
        let policies = self.policies();
        let budget = Budget::new(self.config.budget);
        let of = |mode| policies.iter().enumerate().filter(move |(_, policy)| policy.terms.mode == mode);
        // Those that count first: time that an audited policy took from them would be a denial by it (M06).
        let asked = of(Mode::Enforce).chain(of(Mode::Audit));
        let mut votes: Vec<(usize, Vote)> =
            asked.map(|(place, policy)| (place, policy.vote(pod, budget, &self.surroundings))).collect();
        votes.sort_by_key(|(place, _)| *place);
        let votes: Vec<Vote> = votes.into_iter().map(|(_, vote)| vote).collect();
        Evaluated { decision: merge(&votes), votes }
    }

    /// Every module's status, by name.
    pub fn status(&self) -> Vec<Status> {
        let mut all: Vec<Status> = lock(&self.slots).values().map(|slot| slot.status()).collect();
        all.extend(self.policies().iter().map(|policy| self.policy_status(policy)));
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Tells every behaviour that the agent stops, and waits until what they staged is performed. They go on, in case that
    /// the stop is taken back (T07). Blocks.
    pub fn flush(&self) {
        let slots: Vec<Arc<Slot>> = lock(&self.slots).values().cloned().collect();
        for slot in slots {
            slot.flush();
        }
    }

    /// Ends every behaviour: each is told, what it stages is performed, its thread ends. Blocks until then.
    pub fn stop(&self) {
        for slot in lock(&self.slots).values() {
            slot.stop();
        }
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a module's thread ended by a panic");
            }
        }
        self.lose();
    }

    fn policies(&self) -> Arc<Vec<Arc<Policy>>> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn policy_status(&self, policy: &Policy) -> Status {
        let (counts, last_error) = policy.stats.read();
        let (dropped, series) = policy.shared.talk(|talk| (talk.lines.dropped(), talk.series.clone()));
        let current = policy.current.as_ref();
        let state = match (current, self.surroundings.ownership.generation()) {
            (None, _) => State::Rejected,
            (Some(_), None) => State::Disabled,
            (Some(_), Some(_)) => State::Enabled,
        };
        Status {
            name: policy.name.clone(),
            world: World::PodPolicy.name(),
            state: state.name(),
            source: current.map_or(Source::Operator, |version| version.source),
            version: current.map(|version| version.manifest.version.clone()).unwrap_or_default(),
            digest: current.map(|version| version.digest.clone()).unwrap_or_default(),
            mode: policy.terms.mode.name(),
            on_failure: policy.terms.on_failure.name(),
            problem: policy.problem.clone(),
            note: String::new(),
            last_error,
            counts,
            log_lines_dropped: dropped,
            series,
        }
    }

    fn load_builtin(&self, slot: &Slot, builtin: &Builtin, manifest: &Manifest) {
        let loaded = Version::builtin(&self.surroundings.runtime, builtin, manifest.clone())
            .and_then(|version| slot.replace(Arc::new(version)));
        if let Err(error) = loaded {
            let text = error_chain(&error);
            tracing::error!(module = builtin.name, error = text, "a built-in module cannot be loaded");
            slot.problem(text);
        }
    }

    /// The behaviour of this name; made, with its thread, where there is none.
    fn slot(&self, name: &Name, world: World, limits: &Limits) -> Result<Arc<Slot>, HostError> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(name) {
            return Ok(slot.clone());
        }
        let slot = self.new_slot(name, world, limits)?;
        slots.insert(name.clone(), slot.clone());
        Ok(slot)
    }

    /// A behaviour with its thread, which nobody else knows yet.
    fn new_slot(&self, name: &Name, world: World, limits: &Limits) -> Result<Arc<Slot>, HostError> {
        let shared = Shared::new(name.clone(), self.began, limits);
        let slot = Slot::new(name.clone(), world, shared, self.role(), self.surroundings.clone());
        let working = slot.clone();
        let thread = std::thread::Builder::new()
            .name(format!("module-{name}"))
            .spawn(move || working.work())
            .map_err(|source| HostError::Thread { name: name.clone(), source })?;
        lock(&self.threads).push(thread);
        Ok(slot)
    }

    fn role(&self) -> Role {
        match self.surroundings.ownership.generation() {
            Some(_) => Role::Owner,
            None => Role::Standby,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

fn parsed(builtin: &Builtin) -> Result<(Name, Builtin, Manifest), HostError> {
    let invalid = |source| HostError::Builtin { name: builtin.name, source };
    let name = Name::try_from(builtin.name.to_owned())
        .map_err(|why| invalid(crate::manifest::ManifestError::Syntax(why)))?;
    let manifest = Manifest::parse(&name, builtin.manifest).map_err(invalid)?;
    Ok((name, *builtin, manifest))
}

/// What is behind a lock is whole at every moment that one is released, by a panic too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
