//! The question to the operator's policies, before an ADD is recorded (M05, M07).

use std::num::NonZero;
use std::sync::Arc;

use aether_domain::limits::POLICIES_PER_PROCESSOR;
use aether_domain::managed::Managed;
use aether_domain::pods::{
    AddError, Added, Caller, Check, Del, Deleted, Gc, Known, PodService, Presence, ServiceError,
};
use aether_domain::record::Record;
use aether_module_host::verdict::{Decision, Retry};
use aether_module_host::{Host, pod};
use tokio::sync::Semaphore;

/// The store, behind the policies.
pub(crate) struct Admission<S> {
    store: S,
    host: Arc<Host>,
    /// How many evaluate at once: more than there are processors would only use up each other's time.
    turns: Semaphore,
}

impl<S> Admission<S> {
    pub(crate) fn new(store: S, host: Arc<Host>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { store, host, turns: Semaphore::new(processors.saturating_mul(POLICIES_PER_PROCESSOR)) }
    }

    /// The record as the policies let it be written.
    async fn asked(&self, record: Record, caller: &dyn Caller) -> Result<Record, AddError> {
        // The semaphore is never closed.
        let _turn = self.turns.acquire().await;
        if caller.presence() == Presence::Gone {
            return Err(AddError::CallerGone { key: record.key });
        }
        let (host, pod) = (Arc::clone(&self.host), pod::of(&record));
        let evaluated = tokio::task::spawn_blocking(move || host.evaluate(&pod)).await;
        match evaluated {
            Ok(evaluated) => apply(record, evaluated.decision),
            Err(error) => {
                tracing::error!(key = %record.key, %error, "the question to the policies broke off");
                let message = "the question to it broke off; the agent's log says why".to_owned();
                Err(AddError::Postponed { module: "of this agent".to_owned(), pod: shown(&record), message })
            }
        }
    }
}

/// Does to the record what the policies decided.
fn apply(mut record: Record, decision: Decision) -> Result<Record, AddError> {
    match decision {
        Decision::Admit { changes } => {
            for change in changes {
                // The host lets no other kind through.
                record.policy_labels.insert(change.key, change.value);
            }
            Ok(record)
        }
        Decision::Ignore { module, reason } => {
            tracing::info!(key = %record.key, %module, reason, "a policy leaves the pod unmanaged");
            if record.managed == Managed::Yes {
                record.managed = Managed::Ignored;
            }
            Ok(record)
        }
        Decision::Deny { module, denial } => {
            let pod = shown(&record);
            tracing::info!(key = %record.key, %module, pod, code = denial.code, denial.message, "a policy denies the pod");
            let (module, message) = (module.to_string(), denial.message);
            Err(match denial.retry {
                Retry::No => AddError::Denied { module, pod, message },
                Retry::Later => AddError::Postponed { module, pod, message },
            })
        }
    }
}

/// The pod as its owner knows it.
fn shown(record: &Record) -> String {
    match (record.pod.namespace.as_str(), record.pod.name.as_str()) {
        ("", "") => record.key.to_string(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

impl<S: PodService> PodService for Admission<S> {
    async fn add(&self, record: Record, caller: Arc<dyn Caller>) -> Result<Added, AddError> {
        let record = self.asked(record, &*caller).await?;
        self.store.add(record, caller).await
    }

    async fn del(&self, del: Del) -> Result<Deleted, ServiceError> {
        self.store.del(del).await
    }

    async fn check(&self, check: Check) -> Result<Known, ServiceError> {
        self.store.check(check).await
    }

    async fn gc(&self, gc: Gc) -> Result<usize, ServiceError> {
        self.store.gc(gc).await
    }

    async fn status(&self) -> Result<(), ServiceError> {
        self.store.status().await
    }
}

#[cfg(test)]
mod tests {
    use aether_module_host::verdict::{Change, Denial};

    use super::*;

    fn record(managed: &str) -> Record {
        let text = format!(
            r#"{{"format":1,"oldestReader":1,"container":"c","interface":"eth0","network":"n",
                "started":{{"bootId":"b","boottimeNs":1}},"requestId":"r","managed":"{managed}",
                "netns":{{}},"pod":{{"namespace":"prod","name":"web"}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn module() -> aether_module_host::manifest::Name {
        "team".to_owned().try_into().unwrap()
    }

    #[test]
    fn k09_m07_an_ignored_pod_is_recorded_as_such_and_an_opted_out_one_stays_so() {
        let ignore = || Decision::Ignore { module: module(), reason: "r".to_owned() };
        assert_eq!(apply(record("yes"), ignore()).unwrap().managed, Managed::Ignored);
        assert_eq!(apply(record("opted-out"), ignore()).unwrap().managed, Managed::OptedOut);
    }

    #[test]
    fn m07_granted_changes_are_on_the_record_and_a_denial_names_policy_pod_and_reason() {
        let change = Change { kind: "label".into(), key: "team".into(), value: "a".into() };
        let admitted = apply(record("yes"), Decision::Admit { changes: vec![change] }).unwrap();
        assert_eq!(admitted.policy_labels.get("team").map(String::as_str), Some("a"));
        for (retry, words) in [
            (Retry::No, "the policy team denies pod prod/web: say which team"),
            (Retry::Later, "the policy team does not let pod prod/web start yet: say which team"),
        ] {
            let denial = Denial { code: "no-team".into(), message: "say which team".into(), retry };
            let denied = apply(record("yes"), Decision::Deny { module: module(), denial }).unwrap_err();
            assert_eq!(denied.to_string(), words);
        }
    }
}
