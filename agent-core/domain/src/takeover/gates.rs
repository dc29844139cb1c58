//! What "complete" means: a list of named gates, to which each part of the agent adds its own (T04).

use std::collections::BTreeMap;
use std::time::Duration;

use super::moment::Moment;

/// A gate's name, as the probe's answer shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gate(pub &'static str);

impl Gate {
    /// The pod records have been read.
    pub const RECORDS: Self = Self("records");
    /// The built-in modules are compiled, instantiated, warm and disabled.
    pub const MODULES: Self = Self("modules");
}

/// A gate and how long it is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateRule {
    /// The gate.
    pub gate: Gate,
    /// How long.
    pub patience: Patience,
}

/// How long an agent waits for a gate before it counts as ready without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// For ever.
    Endless,
    /// A lone agent or owner so long from its start, a standby for ever: it must be complete.
    Lone(Duration),
    /// Anybody so long from its start.
    Lenient(Duration),
}

/// What a gate says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateState {
    /// Not yet, or no longer.
    Shut,
    /// Passed.
    Open,
}

/// The probe's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Ready.
    Ready,
    /// Not ready, for want of these.
    Missing(Vec<&'static str>),
}

/// In which part an agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Without the node.
    Standby,
    /// With it.
    Lone,
}

/// The gates of one agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Gates {
    begun: Moment,
    states: BTreeMap<Gate, (Patience, GateState)>,
}

impl Gates {
    pub(super) fn new(rules: &[GateRule], begun: Moment) -> Self {
        let state = |rule: &GateRule| (rule.gate, (rule.patience, GateState::Shut));
        Self { begun, states: rules.iter().map(state).collect() }
    }

    /// Takes a change; a gate that no rule names is none of ours.
    pub(super) fn set(&mut self, gate: Gate, to: GateState) {
        if let Some((_, state)) = self.states.get_mut(&gate) {
            *state = to;
        }
    }

    /// The gates that are still missing to `part` at `now`.
    pub(super) fn missing(&self, part: Part, now: Moment) -> Vec<&'static str> {
        let shut = |patience: Patience, state: GateState| {
            let over = |wait| now.since(self.begun) >= wait;
            match (state, patience, part) {
                (GateState::Open, _, _) => false,
                (GateState::Shut, Patience::Endless, _)
                | (GateState::Shut, Patience::Lone(_), Part::Standby) => true,
                (GateState::Shut, Patience::Lone(wait), Part::Lone)
                | (GateState::Shut, Patience::Lenient(wait), _) => !over(wait),
            }
        };
        let shut = self.states.iter().filter(|(_, (patience, state))| shut(*patience, *state));
        shut.map(|(gate, _)| gate.0).collect()
    }

    /// Whether a standby is complete.
    pub(super) fn complete(&self, now: Moment) -> bool {
        self.missing(Part::Standby, now).is_empty()
    }

    /// When patience with a gate ends next after `now`, for a standby.
    pub(super) fn wake_at(&self, now: Moment) -> Option<Moment> {
        let ends = self.states.values().filter_map(|(patience, state)| match (state, patience) {
            (GateState::Shut, Patience::Lenient(wait)) => Some(self.begun.after(*wait)),
            (GateState::Shut, Patience::Endless | Patience::Lone(_)) | (GateState::Open, _) => None,
        });
        ends.filter(|end| *end > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: Gate = Gate("registry");
    const CERTIFICATE: Gate = Gate("client-certificate");

    #[test]
    fn t04_a_standby_waits_for_the_registry_for_ever_and_a_lone_agent_does_not() {
        let wait = Duration::from_secs(15);
        let rules = [
            GateRule { gate: REGISTRY, patience: Patience::Lone(wait) },
            GateRule { gate: CERTIFICATE, patience: Patience::Lenient(wait) },
        ];
        let begun = Moment::from_nanos(5);
        let mut gates = Gates::new(&rules, begun);
        assert_eq!(gates.missing(Part::Lone, begun).len(), 2);
        assert_eq!(gates.wake_at(begun), Some(begun.after(wait)));
        let later = begun.after(wait);
        assert_eq!(gates.missing(Part::Lone, later), Vec::<&str>::new());
        assert_eq!(gates.missing(Part::Standby, later), ["registry"]);
        gates.set(REGISTRY, GateState::Open);
        assert!(gates.complete(later));
        gates.set(REGISTRY, GateState::Shut);
        assert!(!gates.complete(later));
        gates.set(Gate("unknown"), GateState::Open);
        assert!(!gates.complete(later));
    }
}
