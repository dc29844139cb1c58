//! Every pod must carry certain annotations.
//!
//! Labels are what one would ask for first, but CNI does not tell them: annotations are what a runtime hands on.

use std::collections::BTreeMap;

use aether_module::PodPolicy;
use aether_module::policy::{Denial, Fault, Pod, Verdict, annotation};
use serde::Deserialize;

/// What the policy is told.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// What a pod must have; an empty value takes any that is not empty.
    annotations: BTreeMap<String, String>,
    /// Namespaces that it does not hold for.
    #[serde(default)]
    except_namespaces: Vec<String>,
}

/// The policy.
#[derive(Debug)]
pub struct RequireAnnotation(Settings);

impl PodPolicy for RequireAnnotation {
    type Settings = Settings;

    fn new(settings: Settings) -> Result<Self, String> {
        if settings.annotations.is_empty() {
            return Err("annotations is empty: the policy would ask for nothing".to_owned());
        }
        Ok(Self(settings))
    }

    fn evaluate(&self, pod: &Pod) -> Result<Verdict, Fault> {
        if self.0.except_namespaces.contains(&pod.namespace) {
            return Ok(Verdict::Abstain);
        }
        for (key, wanted) in &self.0.annotations {
            let message = match annotation(pod, key) {
                None | Some("") => format!("the annotation {key} is missing"),
                Some(value) if !wanted.is_empty() && value != wanted => {
                    format!("the annotation {key} must be {wanted:?}")
                }
                Some(_) => continue,
            };
            return Ok(Verdict::Deny(Denial { code: "annotation".to_owned(), message, retry: false }));
        }
        Ok(Verdict::Admit)
    }
}

aether_module::export_pod_policy!(RequireAnnotation);

#[cfg(test)]
mod tests {
    use super::*;
    use aether_module::policy::pod;

    fn policy(wanted: &str) -> RequireAnnotation {
        RequireAnnotation::new(Settings {
            annotations: [("team".to_owned(), wanted.to_owned())].into(),
            except_namespaces: vec!["default".to_owned()],
        })
        .unwrap()
    }

    fn verdict(wanted: &str, namespace: &str, value: Option<&str>) -> Verdict {
        let mut pod = pod(namespace, "web");
        pod.annotations = value.map(|value| ("team".to_owned(), value.to_owned())).into_iter().collect();
        policy(wanted).evaluate(&pod).unwrap()
    }

    #[test]
    fn m12_a_pod_without_the_annotation_is_denied_with_its_name() {
        assert_eq!(verdict("", "shop", Some("a")), Verdict::Admit);
        assert_eq!(verdict("a", "shop", Some("a")), Verdict::Admit);
        assert_eq!(verdict("", "default", None), Verdict::Abstain);
        for (wanted, value) in [("", None), ("", Some("")), ("a", Some("b"))] {
            let verdict = verdict(wanted, "shop", value);
            assert!(
                matches!(&verdict, Verdict::Deny(denial) if denial.message.contains("team")),
                "{verdict:?}"
            );
        }
    }
}
