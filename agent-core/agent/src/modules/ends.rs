//! The agent as modules see it: views that only read memory, and the hands that do what they decided.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aether_chain_watch::{Looker, Observation};
use aether_domain::chain::Healthy;
use aether_domain::text::error_chain;
use aether_module_host::action::{Action, Outcome, Ownership, Permit};
use aether_module_host::ports::{
    Condition, ConflistView, ModuleEvent, NodeView, Ports, Upstream, UpstreamsSummary,
};
use aether_telemetry::Metrics;
use tokio::sync::watch;

use super::events::Events;
use super::hands::Hands;
use super::health::{Health, Held, Readiness, Reassert};
use super::upstreams::Upstreams;
use super::view;

/// The reason of the event by which `conflist-reassert` tells of a fight (C06).
const FIGHT: &str = "ConflistFight";

/// The agent's side of the modules.
pub(crate) struct Ends {
    began: Instant,
    chain: watch::Receiver<Observation>,
    looker: Looker,
    hands: Hands,
    reassert: Reassert,
    health: Mutex<Health>,
    owned_since: Mutex<Option<Instant>>,
    /// What was said last about readiness.
    said: Mutex<Readiness>,
    /// What this process wrote down last.
    remembered: Mutex<Option<Healthy>>,
    pub(crate) upstreams: Upstreams,
    pub(crate) events: Events,
    behaviours: watch::Sender<()>,
    metrics: Arc<Metrics>,
}

/// What a condition is, for a person.
pub(crate) struct Told {
    pub(crate) name: &'static str,
    pub(crate) state: Option<bool>,
    pub(crate) held_ms: u64,
}

impl Ends {
    pub(crate) fn new(
        chain: watch::Receiver<Observation>,
        looker: Looker,
        hands: Hands,
        reassert: Reassert,
        upstreams: Upstreams,
        metrics: Arc<Metrics>,
    ) -> Self {
        let ends = Self {
            began: Instant::now(),
            chain,
            looker,
            hands,
            reassert,
            health: Mutex::new(Health::new(reassert)),
            owned_since: Mutex::default(),
            said: Mutex::new(Readiness::Ready),
            remembered: Mutex::default(),
            upstreams,
            events: Events::default(),
            behaviours: watch::Sender::default(),
            metrics,
        };
        ends.publish();
        ends
    }

    /// Writes down what was observed healthy, if this agent owns the node and it is news (C03). Blocks.
    pub(crate) fn remember(&self, seen: &Observation, ownership: &Ownership) {
        let (Some(healthy), Some(generation)) = (&seen.healthy, ownership.generation()) else { return };
        let mut remembered = lock(&self.remembered);
        if remembered.as_ref().is_some_and(|last| last.says_the_same(healthy))
            || self.reassert == Reassert::Off
        {
            return;
        }
        self.hands.remember(healthy, || ownership.generation() == Some(generation));
        *remembered = Some(healthy.clone());
    }

    /// Tells when a behaviour has come, gone or changed its state.
    pub(crate) fn behaviours(&self) -> watch::Receiver<()> {
        self.behaviours.subscribe()
    }

    /// Whether nothing is being written down at this moment; afterwards only an owner writes.
    pub(crate) fn is_still(&self) -> bool {
        self.remembered.try_lock().is_ok()
    }

    /// The agent owns the node from now on.
    pub(crate) fn own(&self) {
        *lock(&self.owned_since) = Some(Instant::now());
    }

    /// The CNI socket is answered, or is no longer.
    pub(crate) fn serving(&self, serves: bool) {
        lock(&self.health).serving(serves, self.began.elapsed());
        self.publish();
    }

    /// Takes in an observation. Whether a condition changed with it.
    pub(crate) fn observe(&self, seen: &Observation) -> bool {
        let mut health = lock(&self.health);
        let before = health.chained;
        health.observe(seen, self.began.elapsed());
        let (after, is) = (health.chained, health.readiness(self.began.elapsed()));
        drop(health);
        // Time changes it as well as what was seen: compared with what was said last.
        let was = std::mem::replace(&mut *lock(&self.said), is.clone());
        match (&was, &is) {
            (Readiness::Ready, Readiness::NotReady(why)) => {
                tracing::warn!(why, "the node's chain does not let this agent be ready");
            }
            (Readiness::NotReady(_), Readiness::Ready) => {
                tracing::info!("the node's chain lets this agent be ready again");
            }
            _ => {}
        }
        self.publish();
        before.state != after.state
    }

    /// Whether the chain lets the agent be ready now (C08).
    pub(crate) fn readiness(&self) -> Readiness {
        lock(&self.health).readiness(self.began.elapsed())
    }

    /// The conditions, for a person.
    pub(crate) fn told(&self) -> Vec<Told> {
        let now = self.began.elapsed();
        let health = lock(&self.health);
        let told = |name, held: Held| Told {
            name,
            state: held.state,
            held_ms: u64::try_from(now.saturating_sub(held.since).as_millis()).unwrap_or(u64::MAX),
        };
        vec![told("cni-serving", health.serving), told("chained", health.chained)]
    }

    /// What the metrics say of it.
    pub(crate) fn publish(&self) {
        for condition in self.told() {
            self.metrics.condition(condition.name, condition.state);
        }
        self.metrics.ready(self.readiness() == Readiness::Ready);
    }

    /// Does one of the actions on the list or the plugin, and has the watcher look before it returns: what modules see
    /// next is what was done.
    fn edit(&self, action: &Action, permit: &Permit) -> Outcome {
        if self.reassert == Reassert::Off {
            return Outcome::Dropped("--cni-conflist-reassert is false".to_owned());
        }
        let outcome = self.hands.perform(action, permit);
        self.looker.look_blocking();
        outcome
    }
}

impl Ports for Ends {
    fn conflist(&self) -> Arc<ConflistView> {
        Arc::new(view::of(&self.chain.borrow()))
    }

    fn node(&self) -> NodeView {
        let condition =
            |told: Told| Condition { name: told.name.to_owned(), state: told.state, held_for: told.held_ms };
        let owned = *lock(&self.owned_since);
        NodeView {
            // Until the agent knows its node from an API server, none is known, and none is removed.
            taints: Vec::new(),
            owned_for: owned.map(|since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)),
            conditions: self.told().into_iter().map(condition).collect(),
        }
    }

    fn upstreams(&self) -> UpstreamsSummary {
        self.upstreams.summary()
    }

    fn upstreams_page(&self, after: Option<&str>, limit: usize) -> Vec<Upstream> {
        self.upstreams.page(after, limit)
    }

    fn perform(&self, action: &Action, permit: &Permit) -> Outcome {
        match action {
            Action::ReplaceList { .. } | Action::DeriveList { .. } | Action::RestorePlugin => {
                self.edit(action, permit)
            }
            Action::RemoveTaint { key, .. } => Outcome::Failed(format!(
                "cannot remove the taint {key}: this agent does not know its node from an API server"
            )),
            Action::FlushUpstreams => match self.upstreams.flush(now_ms()) {
                Ok(count) => Outcome::Done(format!("{count} upstream(s) written out")),
                Err(error) => Outcome::Failed(error_chain(&error)),
            },
            Action::ForgetUpstreams { names } => {
                Outcome::Done(format!("{} upstream(s) forgotten", self.upstreams.forget(names, now_ms())))
            }
        }
    }

    fn event(&self, event: ModuleEvent) {
        let ModuleEvent { module, reason, about, message } = &event;
        tracing::warn!(%module, reason, about, message, "event");
        self.metrics.event(module.as_str(), reason);
        if reason == FIGHT {
            lock(&self.health).fight(self.began.elapsed());
            self.publish();
        }
        self.events.raise(event, now_ms() / 1000);
    }

    fn behaviours_changed(&self) {
        self.behaviours.send_replace(());
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Whole at every moment that the lock is released, by a panic too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
