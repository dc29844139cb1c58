//! Only pods of certain namespaces are managed; others are left alone, or refused.

use aether_module::PodPolicy;
use aether_module::policy::{Change, Denial, Fault, Pod, Verdict};
use serde::Deserialize;

/// What the policy is told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Namespaces; a `*` at the end stands for anything.
    namespaces: Vec<String>,
    /// What happens to pods of others.
    others: Others,
}

/// What happens to a pod that is not on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Others {
    /// It starts and is left alone.
    Ignore,
    /// It does not start.
    Deny,
}

/// The policy.
#[derive(Debug)]
pub struct NamespaceList(Settings);

impl PodPolicy for NamespaceList {
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, String> {
        if settings.namespaces.is_empty() {
            return Err("namespaces is empty: no pod would be managed".to_owned());
        }
        Ok(Self(settings))
    }

    fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault> {
        let matches = |listed: &&String| match listed.strip_suffix('*') {
            Some(start) => pod.namespace.starts_with(start),
            None => **listed == pod.namespace,
        };
        Ok(match (self.0.namespaces.iter().find(matches), self.0.others) {
            (Some(listed), _) => Verdict::AdmitWith(vec![Change {
                kind: "label".to_owned(),
                key: "admitted-by".to_owned(),
                value: listed.clone(),
            }]),
            (None, Others::Ignore) => {
                Verdict::Ignore(format!("namespace {} is not on the list", pod.namespace))
            }
            (None, Others::Deny) => Verdict::Deny(Denial {
                code: "namespace".to_owned(),
                message: format!("namespace {} is not on the list", pod.namespace),
                retry: false,
            }),
        })
    }
}

aether_module::export_pod_policy!(NamespaceList);

#[cfg(test)]
mod tests {
    use super::*;
    use aether_module::policy::pod;

    #[test]
    fn m12_a_namespace_is_on_the_list_by_name_or_by_its_beginning() {
        let policy = |others| {
            NamespaceList::new(Settings { namespaces: vec!["shop".into(), "team-*".into()], others }).unwrap()
        };
        for (namespace, listed) in [("shop", true), ("shop2", false), ("team-a", true), ("team", false)] {
            let ignored = policy(Others::Ignore).evaluate(&pod(namespace, "web")).unwrap();
            assert_eq!(matches!(ignored, Verdict::AdmitWith(_)), listed, "{namespace}");
            let denied = policy(Others::Deny).evaluate(&pod(namespace, "web")).unwrap();
            assert_eq!(matches!(denied, Verdict::Deny(_)), !listed, "{namespace}");
        }
    }
}
