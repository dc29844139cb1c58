//! Which pods made a policy fail. A pod that did so twice within a minute gets the failure policy without the policy being run again;
//! nobody else is affected, so that one pod cannot switch a policy off for others.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// How many failures of one policy on one pod are enough.
pub const STRIKES: u32 = 2;
/// For how long a failure counts: a policy that only ran late on a busy node is asked again.
pub const MEMORY: Duration = Duration::from_secs(60);
/// How many pods are remembered; the oldest is forgotten first.
pub const REMEMBERED: usize = 1024;

/// The failures of one version of one policy.
#[derive(Debug, Default)]
pub struct Strikes {
    by_pod: HashMap<String, Struck>,
    order: VecDeque<String>,
}

#[derive(Debug, Clone, Copy)]
struct Struck {
    times: u32,
    last: Duration,
}

impl Strikes {
    /// Whether the policy is run for the pod at `now` on the host's clock.
    pub fn allows(&self, pod: &str, now: Duration) -> bool {
        self.by_pod
            .get(pod)
            .is_none_or(|struck| struck.times < STRIKES || now.saturating_sub(struck.last) >= MEMORY)
    }

    /// The policy failed on the pod.
    pub fn add(&mut self, pod: &str, now: Duration) {
        if let Some(struck) = self.by_pod.get_mut(pod) {
            let forgotten = now.saturating_sub(struck.last) >= MEMORY;
            struck.times = if forgotten { 1 } else { struck.times.saturating_add(1) };
            struck.last = now;
            return;
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_pod.remove(&oldest);
        }
        self.order.push_back(pod.to_owned());
        self.by_pod.insert(pod.to_owned(), Struck { times: 1, last: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn m05_a_pod_that_fails_a_policy_twice_is_not_evaluated_again_and_others_are() {
        let mut strikes = Strikes::default();
        strikes.add("bad", NOW);
        assert!(strikes.allows("bad", NOW));
        strikes.add("bad", NOW);
        assert!(!strikes.allows("bad", NOW) && strikes.allows("good", NOW));
        assert!(strikes.allows("bad", NOW + MEMORY));
    }

    #[test]
    fn m05_the_memory_is_bounded_and_forgets_the_oldest() {
        let mut strikes = Strikes::default();
        for pod in 0..REMEMBERED + 10 {
            strikes.add(&pod.to_string(), NOW);
            strikes.add(&pod.to_string(), NOW);
        }
        assert_eq!((strikes.by_pod.len(), strikes.order.len()), (REMEMBERED, REMEMBERED));
        assert!(strikes.allows("0", NOW) && !strikes.allows(&(REMEMBERED + 9).to_string(), NOW));
    }
}
