//! One pod policy: asking it, and what it counts as when it cannot answer (M05, M07).

use std::sync::Arc;

use crate::bindings::exports::aether::policy::pods::{self, Pod};
use crate::capability::cut;
use crate::deadline::Budget;
use crate::failure::Failure;
use crate::grant::Grant;
use crate::instance::{Instance, Surroundings, timed};
use crate::limits::TEXT_MAX;
use crate::manifest::{FailurePolicy, Instances, Manifest, Mode, Name};
use crate::state::Shared;
use crate::status::Stats;
use crate::strikes::STRIKES;
use crate::verdict::{By, Change, Denial, Retry, Verdict, Vote};
use crate::version::{SharedVersion, Version};

/// The code of a denial because a policy could not answer.
pub const UNAVAILABLE: &str = "policy-unavailable";
/// The code of a denial because a policy wants a change that it was not granted.
pub const NOT_GRANTED: &str = "change-not-granted";

/// What is said about a policy, whether it can be loaded or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) order: i64,
    pub(crate) mode: Mode,
    pub(crate) on_failure: FailurePolicy,
}

impl Terms {
    pub(crate) fn of(manifest: &Manifest) -> Self {
        Self { order: manifest.order, mode: manifest.mode, on_failure: manifest.on_failure }
    }

    /// The terms of a policy whose manifest cannot be read: nobody gets past it.
    pub(crate) const STRICT: Self = Self { order: 0, mode: Mode::Enforce, on_failure: FailurePolicy::Deny };
}

/// A policy as it stands at one moment. A change makes another one of these; calls in flight end on theirs.
pub(crate) struct Policy {
    pub(crate) name: Name,
    pub(crate) terms: Terms,
    pub(crate) current: Option<SharedVersion>,
    pub(crate) previous: Option<SharedVersion>,
    /// What is wrong with its files; empty when nothing is.
    pub(crate) problem: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) stats: Arc<Stats>,
}

impl Policy {
    /// Asks the policy about a pod, within what is left of the time of all of them: instantiation and `init` count too.
    pub(crate) fn vote(&self, pod: &Pod, budget: Budget, surroundings: &Surroundings) -> Vote {
        let (by, verdict) = match &self.current {
            None => self.failed(&self.problem, pod, budget, surroundings),
            Some(version) => match self.ask(version, pod, budget, surroundings) {
                Ok(verdict) => (By::Module, verdict),
                Err(failure) => {
                    self.stats.failure(&failure);
                    tracing::warn!(module = %self.name, pod = pod.name, namespace = pod.namespace, uid = pod.uid, %failure, "a policy could not answer");
                    self.failed(&failure.to_string(), pod, budget, surroundings)
                }
            },
        };
        self.stats.verdict(by, &verdict);
        Vote { module: self.name.clone(), mode: self.terms.mode, by, verdict }
    }

    /// What the policy counts as when it cannot answer.
    fn failed(&self, why: &str, pod: &Pod, budget: Budget, surroundings: &Surroundings) -> (By, Verdict) {
        if self.terms.on_failure == FailurePolicy::Allow {
            return (By::FailurePolicy, Verdict::Abstain);
        }
        if self.terms.on_failure == FailurePolicy::LastGood
            && let Some(previous) = &self.previous
            && let Ok(verdict) = self.ask(previous, pod, budget, surroundings)
        {
            return (By::FailurePolicy, verdict);
        }
        let message = format!("the policy could not answer: {why}");
        let denial = Denial { code: UNAVAILABLE.to_owned(), message, retry: Retry::Later };
        (By::FailurePolicy, Verdict::Deny(denial))
    }

    fn ask(
        &self,
        version: &Version,
        pod: &Pod,
        budget: Budget,
        surroundings: &Surroundings,
    ) -> Result<Verdict, Failure> {
        if budget.is_over() {
            return Err(Failure::Budget);
        }
        let who = if pod.uid.is_empty() { &pod.sandbox_id } else { &pod.uid };
        if !version.strikes(|strikes| strikes.allows(who, self.shared.now())) {
            return Err(Failure::Struck { strikes: STRIKES });
        }
        match self.once(version, pod, budget, surroundings) {
            Ok(verdict) => Ok(taken(verdict, &version.manifest.grant)),
            Err(failure) => {
                if failure.is_crash() {
                    version.strikes(|strikes| strikes.add(who, self.shared.now()));
                }
                Err(failure)
            }
        }
    }

    fn once(
        &self,
        version: &Version,
        pod: &Pod,
        budget: Budget,
        surroundings: &Surroundings,
    ) -> Result<pods::Verdict, Failure> {
        let (answer, took) = timed(|| {
            let warm = match version.manifest.instances {
                Instances::Warm => version.take_warm(),
                Instances::PerCall => None,
            };
            let mut instance = match warm {
                Some(instance) => instance,
                None => self.instance(version, surroundings, budget)?,
            };
            let verdict = instance.evaluate(pod, budget);
            let peak = instance.peak();
            if version.manifest.instances == Instances::Warm {
                version.keep_warm(instance);
            }
            verdict.map(|verdict| (verdict, peak))
        });
        let (verdict, peak) = match answer {
            Ok((verdict, peak)) => (Ok(verdict), peak),
            Err(failure) => (Err(failure), 0),
        };
        self.stats.call(took, peak);
        verdict
    }

    fn instance(
        &self,
        version: &Version,
        surroundings: &Surroundings,
        budget: Budget,
    ) -> Result<Instance, Failure> {
        let settings = &version.manifest.settings;
        Instance::start(&version.prepared, &self.shared, surroundings, settings, None, budget)
    }
}

/// Tries a version before it is taken: an instance, its settings, one pod.
pub(crate) fn trial(
    version: &Version,
    shared: &Arc<Shared>,
    surroundings: &Surroundings,
) -> Result<(), Failure> {
    let settings = &version.manifest.settings;
    let mut instance =
        Instance::start(&version.prepared, shared, surroundings, settings, None, Budget::ENDLESS)?;
    match instance.evaluate(&canned(), Budget::ENDLESS) {
        Err(failure) if failure.is_crash() => Err(failure),
        // That it cannot tell about a pod that it was not written for is an answer too.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The pod of the trial.
fn canned() -> Pod {
    Pod {
        namespace: "aether-trial".to_owned(),
        name: "trial".to_owned(),
        uid: "00000000-0000-0000-0000-000000000000".to_owned(),
        service_account: None,
        labels: None,
        annotations: vec![("aether.io/trial".to_owned(), "true".to_owned())],
        host_ports: Vec::new(),
        addresses: vec!["192.0.2.1/24".to_owned(), "2001:db8::1/64".to_owned()],
        sandbox_id: "trial".to_owned(),
        ifname: "eth0".to_owned(),
        netns: "/var/run/netns/trial".to_owned(),
        network: "trial".to_owned(),
        extra: Vec::new(),
    }
}

/// The verdict in our words. A change that is not granted makes it a denial.
fn taken(verdict: pods::Verdict, grant: &Grant) -> Verdict {
    let short = |text: &str| cut(text, TEXT_MAX).to_owned();
    match verdict {
        pods::Verdict::Abstain => Verdict::Abstain,
        pods::Verdict::Admit => Verdict::Admit,
        pods::Verdict::Ignore(reason) => Verdict::Ignore { reason: short(&reason) },
        pods::Verdict::Deny(denial) => Verdict::Deny(Denial {
            code: cut(&denial.code, 64).to_owned(),
            message: short(&denial.message),
            retry: if denial.retry { Retry::Later } else { Retry::No },
        }),
        pods::Verdict::AdmitWith(changes) => {
            let granted = |kind: &str| grant.change.iter().any(|granted| granted.name() == kind);
            if let Some(change) = changes.iter().find(|change| !granted(&change.kind)) {
                let message = format!(
                    "the policy admits the pod with a change of kind {:?}, which grant.change does not hold",
                    cut(&change.kind, 64)
                );
                return Verdict::Deny(Denial { code: NOT_GRANTED.to_owned(), message, retry: Retry::No });
            }
            let changes = changes.into_iter().map(|change| Change {
                kind: change.kind,
                key: short(&change.key),
                value: short(&change.value),
            });
            Verdict::AdmitWith(changes.collect())
        }
    }
}
