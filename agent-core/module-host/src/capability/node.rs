//! `aether:node`: taints and readiness.

use crate::action::{Action, TaintEffect};
use crate::bindings::aether::base::types::{Refusal, Tri};
use crate::bindings::aether::node::{taint, view};
use crate::state::State;

impl view::Host for State {
    fn list_taints(&mut self) -> Vec<view::Taint> {
        let taints = self.ports.node().taints.into_iter();
        taints
            .map(|taint| {
                let effect = match taint.effect {
                    TaintEffect::NoSchedule => view::TaintEffect::NoSchedule,
                    TaintEffect::PreferNoSchedule => view::TaintEffect::PreferNoSchedule,
                    TaintEffect::NoExecute => view::TaintEffect::NoExecute,
                };
                view::Taint { key: taint.key, value: taint.value, effect }
            })
            .collect()
    }

    fn get_readiness(&mut self) -> view::Readiness {
        let node = self.ports.node();
        let conditions = node.conditions.into_iter().map(|condition| view::Condition {
            name: condition.name,
            state: match condition.state {
                Some(true) => Tri::Yes,
                Some(false) => Tri::No,
                None => Tri::Unknown,
            },
            held_for: condition.held_for,
        });
        // Ownership is the host's to say, whatever the agent's view was made of.
        let owned_for = self.ownership.generation().and(node.owned_for);
        view::Readiness { owned_for, conditions: conditions.collect() }
    }
}

impl taint::Host for State {
    fn remove(&mut self, key: String, effect: view::TaintEffect) -> Result<u64, Refusal> {
        let effect = match effect {
            view::TaintEffect::NoSchedule => TaintEffect::NoSchedule,
            view::TaintEffect::PreferNoSchedule => TaintEffect::PreferNoSchedule,
            view::TaintEffect::NoExecute => TaintEffect::NoExecute,
        };
        self.stage(Action::RemoveTaint { key, effect })
    }
}
