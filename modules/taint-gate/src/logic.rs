//! When the node's not-ready taint may go (N02): pure.

use aether_module::behaviour::Tri;
use aether_module::behaviour::node::view::{Readiness, Taint};
use serde::Deserialize;

/// How soon it is looked at again while the taint stands.
pub const REQUEUE_MS: u32 = 1000;
/// How soon it is looked at again while it does not: it is reconciled for ever, not once.
pub const IDLE_MS: u32 = 5000;

/// What the module is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// The taint's key.
    pub key: String,
    /// What must hold.
    pub conditions: Vec<String>,
    /// For how long, in milliseconds.
    pub held_ms: u64,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// There is no such taint.
    Nothing,
    /// It stays: why.
    Wait(String),
    /// It goes, in each of these forms.
    Remove(Vec<Taint>),
}

/// Decides. `asked` is how many milliseconds ago the removal was asked for last: what the agent sees of the node may be
/// older than that.
pub fn step(settings: &Settings, taints: &[Taint], readiness: &Readiness, asked: Option<u64>) -> Step {
    let ours: Vec<Taint> = taints.iter().filter(|taint| taint.key == settings.key).cloned().collect();
    if ours.is_empty() {
        return Step::Nothing;
    }
    if readiness.owned_for.is_none() {
        return Step::Wait("the agent does not own the node".to_owned());
    }
    for name in &settings.conditions {
        let condition = readiness.conditions.iter().find(|condition| condition.name == *name);
        match condition {
            Some(condition) if condition.state == Tri::Yes => {
                if condition.held_for < settings.held_ms {
                    return Step::Wait(format!(
                        "{name} has held for {} of {} ms",
                        condition.held_for, settings.held_ms
                    ));
                }
            }
            // Unknown is never yes.
            Some(condition) if condition.state == Tri::Unknown => {
                return Step::Wait(format!("{name} cannot be told"));
            }
            Some(_) => return Step::Wait(format!("{name} does not hold")),
            None => return Step::Wait(format!("nothing is known of {name}")),
        }
    }
    if asked.is_some_and(|asked| asked < u64::from(REQUEUE_MS)) {
        return Step::Wait("the removal was asked for just now".to_owned());
    }
    Step::Remove(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aether_module::behaviour::node::view::{Condition, TaintEffect};

    const KEY: &str = "aether.io/agent-not-ready";

    fn settings() -> Settings {
        Settings { key: KEY.into(), conditions: vec!["cni-serving".into(), "chained".into()], held_ms: 5000 }
    }

    fn taint(key: &str) -> Taint {
        Taint { key: key.into(), value: None, effect: TaintEffect::NoSchedule }
    }

    fn ready(states: &[(&str, Tri, u64)]) -> Readiness {
        let condition = |(name, state, held): &(&str, Tri, u64)| Condition {
            name: (*name).into(),
            state: *state,
            held_for: *held,
        };
        Readiness { owned_for: Some(60_000), conditions: states.iter().map(condition).collect() }
    }

    #[test]
    fn n02_the_taint_goes_only_when_everything_has_held_for_one_recheck() {
        let good = [("cni-serving", Tri::Yes, 5000), ("chained", Tri::Yes, 5000)];
        let taints = [taint("other"), taint(KEY)];
        assert!(
            matches!(step(&settings(), &taints, &ready(&good), None), Step::Remove(ours) if ours.len() == 1)
        );
        for (index, state, held) in
            [(0, Tri::No, 9000), (1, Tri::Unknown, 9000), (1, Tri::Yes, 4999), (0, Tri::Yes, 0)]
        {
            let mut bad = good;
            bad[index] = (bad[index].0, state, held);
            assert!(matches!(step(&settings(), &taints, &ready(&bad), None), Step::Wait(_)), "{bad:?}");
        }
        assert!(
            matches!(step(&settings(), &taints, &ready(&good[..1]), None), Step::Wait(why) if why.contains("chained"))
        );
    }

    #[test]
    fn n02_a_removal_is_asked_for_again_only_after_a_while() {
        let good = [("cni-serving", Tri::Yes, 5000), ("chained", Tri::Yes, 5000)];
        let again = |asked| step(&settings(), &[taint(KEY)], &ready(&good), Some(asked));
        assert!(matches!(again(0), Step::Wait(_)) && matches!(again(999), Step::Wait(_)));
        assert!(matches!(again(1000), Step::Remove(_)));
    }

    #[test]
    fn n02_a_standby_and_a_node_without_the_taint_do_nothing() {
        let good = [("cni-serving", Tri::Yes, 5000), ("chained", Tri::Yes, 5000)];
        let standby = Readiness { owned_for: None, ..ready(&good) };
        assert!(matches!(step(&settings(), &[taint(KEY)], &standby, None), Step::Wait(_)));
        assert_eq!(step(&settings(), &[taint("other")], &ready(&good), None), Step::Nothing);
    }
}
