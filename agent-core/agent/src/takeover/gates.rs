//! What "complete" means today (T04): the records read, the built-in modules warm, the operator's compiled.

use std::sync::Arc;
use std::time::Duration;

use aether_domain::limits::POLICIES_GATE;
use aether_domain::takeover::{Event, Gate, GateRule, GateState, Patience};
use aether_domain::text::error_chain;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// The operator's modules are compiled and tried. One that cannot be is no reason to stand still (M08).
const POLICIES: Gate = Gate("policies");
/// After how long the records are read again where they could not be.
const AGAIN: Duration = Duration::from_secs(1);

/// The gates of this agent.
pub(super) fn rules() -> Vec<GateRule> {
    vec![
        GateRule { gate: Gate::RECORDS, patience: Patience::Endless },
        GateRule { gate: Gate::MODULES, patience: Patience::Endless },
        GateRule { gate: POLICIES, patience: Patience::Lenient(POLICIES_GATE) },
    ]
}

/// Reads the records, as a standby does, and says so. Tried again until it is done.
pub(super) async fn records(node: Arc<Node>, events: mpsc::Sender<Event>, stop: CancellationToken) {
    let mut said = false;
    while let Some(Err(error)) = stop.run_until_cancelled(node.store.reload()).await {
        if !std::mem::replace(&mut said, true) {
            tracing::warn!(error = %error_chain(&error), "cannot read the pods' records; trying on");
        }
        if stop.run_until_cancelled(tokio::time::sleep(AGAIN)).await.is_none() {
            return;
        }
    }
    open(&events, Gate::RECORDS).await;
}

/// Looks at the built-in modules: one that faults shuts the gate until it has recovered.
pub(super) async fn modules(node: Arc<Node>, events: mpsc::Sender<Event>, stop: CancellationToken) {
    let mut was = GateState::Shut;
    let mut changes = node.modules.ends.behaviours();
    loop {
        // Before the look, so that what changes meanwhile is looked at again.
        changes.mark_unchanged();
        let (is, why) = built_in(&node).await;
        if is != was {
            if is == GateState::Shut {
                tracing::warn!(why, "the built-in modules are not ready");
            }
            was = is;
            // The receiver is gone only when the agent ends.
            let _ = events.send(Event::Gate { gate: Gate::MODULES, state: is }).await;
        }
        let Some(Ok(())) = stop.run_until_cancelled(changes.changed()).await else { return };
    }
}

/// The gate of the built-in modules, and why it is shut. A module that is in the middle of a call is waited for.
async fn built_in(node: &Node) -> (GateState, String) {
    let host = Arc::clone(&node.modules.host);
    match tokio::task::spawn_blocking(move || host.builtins_ready()).await {
        Ok(Ok(())) => (GateState::Open, String::new()),
        Ok(Err(why)) => (GateState::Shut, why),
        Err(error) => (GateState::Shut, error.to_string()),
    }
}

/// Waits until the operator's modules are compiled.
pub(super) async fn policies(node: Arc<Node>, events: mpsc::Sender<Event>, stop: CancellationToken) {
    if stop.run_until_cancelled(node.modules.compiled()).await.is_some() {
        open(&events, POLICIES).await;
    }
}

async fn open(events: &mpsc::Sender<Event>, gate: Gate) {
    // The receiver is gone only when the agent ends.
    let _ = events.send(Event::Gate { gate, state: GateState::Open }).await;
}
