//! The operator's modules: what a look at their directory changes (M08).

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::{Host, lock};
use crate::cache::digest;
use crate::failure::LoadError;
use crate::files;
use crate::layout::{LayoutError, Place};
use crate::limits::Limits;
use crate::manifest::{FailurePolicy, Manifest, Mode, Name};
use crate::policy::{Policy, Terms, trial};
use crate::reload::{Change, Fingerprint, changes};
use crate::state::Shared;
use crate::status::chain;
use crate::version::Version;
use crate::world::World;

/// What is known of the directory.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    prints: BTreeMap<Name, Fingerprint>,
    problems: Vec<String>,
}

/// What a look at the directory came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescanned {
    /// What was done, by module.
    pub changes: Vec<(Name, Result<What, String>)>,
    /// What is in the directory and no module, and why; or why the directory cannot be read.
    pub problems: Vec<String>,
}

/// What was done about a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A new version runs.
    Loaded,
    /// It is gone; of a built-in name: the built-in one runs again.
    Removed,
}

/// What was read of one module.
struct Candidate {
    manifest: Result<Manifest, LoadError>,
    component: Result<Vec<u8>, LoadError>,
    terms: Terms,
    print: Fingerprint,
}

impl Host {
    /// Looks at the directory of operator modules and takes what changed. Compiles what is not in the cache, so it may
    /// take long: on a blocking thread. Calls go on with what was loaded meanwhile.
    pub fn rescan(&self) -> Rescanned {
        self.rescan_announcing(|| {})
    }

    /// The same; `announced` is called once every policy in the directory is known: from then on nobody gets past one
    /// that is still being compiled, since its failure policy answers.
    pub fn rescan_announcing(&self, announced: impl FnOnce()) -> Rescanned {
        let mut loaded = lock(&self.operators);
        let Some(directory) = self.config.directory.clone() else {
            announced();
            return Rescanned { changes: Vec::new(), problems: Vec::new() };
        };
        let found = match files::list(&directory) {
            Ok(found) => found,
            Err(error) => {
                let text = format!(
                    "cannot read the directory of modules {}: {error}; what was loaded stays",
                    directory.display()
                );
                loaded.problems = vec![text.clone()];
                announced();
                return Rescanned { changes: Vec::new(), problems: vec![text] };
            }
        };
        loaded.problems = found.errors.iter().map(ToString::to_string).collect();
        let mut candidates: BTreeMap<Name, Candidate> =
            found.places.iter().map(|place| (place.name.clone(), candidate(&directory, place))).collect();
        for error in found.errors {
            if let LayoutError::Twice { name } = &error {
                candidates.insert(name.clone(), Candidate::unusable(error.to_string()));
            }
        }
        let prints =
            candidates.iter().map(|(name, candidate)| (name.clone(), candidate.print.clone())).collect();
        let todo = changes(&loaded.prints, &prints);
        // Policies that are new are there before they are compiled: until then their failure policy answers.
        for (name, change) in &todo {
            if let (Change::Load, Some(candidate)) = (change, candidates.get(name))
                && candidate.is_policy()
            {
                self.announce(name, candidate);
            }
        }
        announced();
        let mut done = Vec::new();
        for (name, change) in todo {
            let result = match change {
                Change::Remove => {
                    self.remove(&name);
                    Ok(What::Removed)
                }
                Change::Load => match candidates.remove(&name) {
                    Some(candidate) => self.take(&name, candidate).map(|()| What::Loaded),
                    None => continue,
                },
            };
            match &result {
                Ok(what) => tracing::info!(module = %name, ?what, "a module changed"),
                Err(error) => tracing::warn!(module = %name, error, "a module is not taken"),
            }
            done.push((name, result));
        }
        loaded.prints = prints;
        Rescanned { changes: done, problems: loaded.problems.clone() }
    }

    /// What is in the directory and no module, as the last look found it.
    pub fn problems(&self) -> Vec<String> {
        lock(&self.operators).problems.clone()
    }

    /// Takes a module that lies in no directory: for tools that try one out. The error says why an agent would not.
    pub fn offer(&self, name: &Name, manifest: &str, component: Vec<u8>) -> Result<(), String> {
        let path = std::path::PathBuf::from("module.toml");
        let manifest = Manifest::parse(name, manifest).map_err(|source| LoadError::Manifest { path, source });
        let limit = manifest.as_ref().map_or(usize::MAX, |manifest| manifest.limits.component);
        let component =
            if component.len() > limit { Err(LoadError::TooLarge { limit }) } else { Ok(component) };
        let terms = manifest.as_ref().map_or(Terms::STRICT, Terms::of);
        self.take(name, Candidate { manifest, component, terms, print: Fingerprint(String::new()) })
    }

    fn take(&self, name: &Name, candidate: Candidate) -> Result<(), String> {
        let (policy, terms) = (candidate.is_policy(), candidate.terms.clone());
        let loaded = candidate.manifest.and_then(|manifest| {
            let component = candidate.component?;
            let runtime = &self.surroundings.runtime;
            let version =
                Version::operator(runtime, &self.cache, self.compiler.as_ref(), manifest, &component)?;
            Ok(Arc::new(version))
        });
        let result = match loaded {
            Ok(version) if version.manifest.world == World::PodPolicy => {
                let shared = self.shared(name, &version.manifest.limits);
                match trial(&version, &shared, &self.surroundings) {
                    Ok(()) => {
                        self.swap(name, |policy| {
                            let previous = policy.current.clone();
                            Policy {
                                current: Some(version),
                                previous,
                                terms,
                                problem: String::new(),
                                ..policy
                            }
                        });
                        return Ok(());
                    }
                    Err(failure) => Err(LoadError::Trial(failure)),
                }
            }
            Ok(version) => match self.slot(name, &version.manifest) {
                Ok(slot) => slot.replace(version),
                Err(error) => return Err(chain(&error)),
            },
            Err(error) => Err(error),
        };
        let Err(error) = result else { return Ok(()) };
        let text = chain(&error);
        self.refuse(name, policy, &terms, &text);
        Err(text)
    }

    /// What runs goes on, and status says what is wrong with the files.
    fn refuse(&self, name: &Name, policy: bool, terms: &Terms, text: &str) {
        let slot = lock(&self.slots).get(name).cloned();
        match slot {
            Some(slot) => slot.problem(text.to_owned()),
            None if policy => self.swap(name, |policy| {
                let running = policy.current.is_some();
                let terms = if running { policy.terms.clone() } else { terms.clone() };
                Policy { terms, problem: text.to_owned(), ..policy }
            }),
            // A behaviour that never ran: nothing waits for it, and the look's problems name it.
            None => {}
        }
    }

    fn announce(&self, name: &Name, candidate: &Candidate) {
        if self.policies().iter().any(|policy| policy.name == *name) {
            return;
        }
        self.swap(name, |policy| Policy {
            terms: candidate.terms.clone(),
            problem: "it is being compiled and tried".to_owned(),
            ..policy
        });
    }

    fn remove(&self, name: &Name) {
        if let Some((_, builtin, manifest)) = self.builtins.iter().find(|(builtin, ..)| builtin == name) {
            if let Ok(slot) = self.slot(name, manifest) {
                self.load_builtin(&slot, builtin, manifest);
            }
            return;
        }
        let slot = lock(&self.slots).remove(name);
        if let Some(slot) = slot {
            slot.stop();
        }
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        let left = policies.iter().filter(|policy| policy.name != *name).cloned().collect();
        *policies = Arc::new(left);
    }

    fn shared(&self, name: &Name, limits: &Limits) -> Arc<Shared> {
        let policies = self.policies();
        let known = policies.iter().find(|policy| policy.name == *name).map(|policy| policy.shared.clone());
        known.unwrap_or_else(|| Shared::new(name.clone(), self.began, limits))
    }

    /// Puts another state of a policy in the place of the old one. Calls in flight end on theirs.
    fn swap(&self, name: &Name, change: impl FnOnce(Policy) -> Policy) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        let old = policies.iter().find(|policy| policy.name == *name);
        let base = match old {
            Some(old) => Policy {
                name: old.name.clone(),
                terms: old.terms.clone(),
                current: old.current.clone(),
                previous: old.previous.clone(),
                problem: old.problem.clone(),
                shared: old.shared.clone(),
                stats: old.stats.clone(),
            },
            None => Policy {
                name: name.clone(),
                terms: Terms::STRICT,
                current: None,
                previous: None,
                problem: String::new(),
                shared: Shared::new(name.clone(), self.began, &Limits::default()),
                stats: Arc::default(),
            },
        };
        let loads = base.current.as_ref().map(|version| version.digest.clone());
        let changed = change(base);
        if changed.current.as_ref().map(|version| version.digest.clone()) != loads {
            changed.stats.load();
        }
        let others = policies.iter().filter(|policy| policy.name != *name).cloned();
        let mut all: Vec<Arc<Policy>> = others.chain([Arc::new(changed)]).collect();
        all.sort_by(|a, b| (a.terms.order, &a.name).cmp(&(b.terms.order, &b.name)));
        *policies = Arc::new(all);
    }
}

impl Candidate {
    /// Whether it is a policy, as far as can be told: what cannot be told counts as one, so that nobody gets past it.
    fn is_policy(&self) -> bool {
        match &self.manifest {
            Ok(manifest) => manifest.world == World::PodPolicy,
            Err(_) => self.terms != NOT_A_POLICY,
        }
    }

    fn unusable(why: String) -> Self {
        let print = Fingerprint(why.clone());
        let refused = |what: String| LoadError::NotAComponent { what };
        Self {
            manifest: Err(refused(why.clone())),
            component: Err(refused(why)),
            terms: Terms::STRICT,
            print,
        }
    }
}

/// The terms of what is said to be no policy: nothing at ADD depends on it.
const NOT_A_POLICY: Terms = Terms { order: i64::MIN, mode: Mode::Audit, on_failure: FailurePolicy::Allow };

fn candidate(directory: &Path, place: &Place) -> Candidate {
    let text = match files::manifest_text(directory, place) {
        Ok(text) => text,
        Err(error) => {
            let print = Fingerprint(chain(&error));
            let component = Err(LoadError::Missing { path: directory.join(&place.component) });
            return Candidate { manifest: Err(error), component, terms: Terms::STRICT, print };
        }
    };
    let path = directory.join(&place.manifest);
    let manifest = Manifest::parse(&place.name, &text).map_err(|source| LoadError::Manifest { path, source });
    let limit = manifest.as_ref().map_or(0, |manifest| manifest.limits.component);
    let component = match &manifest {
        Ok(_) => files::component(directory, place, limit),
        Err(_) => Err(LoadError::Missing { path: directory.join(&place.component) }),
    };
    let of_component = match &component {
        Ok(bytes) => digest(bytes),
        Err(error) => chain(error),
    };
    let terms = match &manifest {
        Ok(manifest) => Terms::of(manifest),
        Err(_) => lenient(&place.name, &text),
    };
    let print = Fingerprint(format!("{} {of_component}", digest(text.as_bytes())));
    Candidate { manifest, component, terms, print }
}

/// The terms that a manifest says although it is not taken: what it says about failure holds for itself too.
fn lenient(name: &Name, text: &str) -> Terms {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let said = |key: &str| table.get(key).and_then(toml::Value::as_str);
    let behaviour = |world: &str| World::ALL.iter().any(|w| *w != World::PodPolicy && w.name() == world);
    if behaviour(name.as_str()) || said("world").is_some_and(behaviour) {
        return NOT_A_POLICY;
    }
    let on_failure = match said("on-failure") {
        Some("allow") => FailurePolicy::Allow,
        Some("last-good") => FailurePolicy::LastGood,
        _ => FailurePolicy::Deny,
    };
    let mode = if said("mode") == Some("audit") { Mode::Audit } else { Mode::Enforce };
    Terms { mode, on_failure, ..Terms::STRICT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m05_a_manifest_that_is_not_taken_keeps_what_it_says_about_failure() {
        let name = |text: &str| Name::try_from(text.to_owned()).unwrap();
        let strict = lenient(&name("a"), "world = [");
        assert_eq!(strict, Terms::STRICT);
        let allow = lenient(&name("a"), "world = \"pod-policy\"\non-failure = \"allow\"\nbad = 1");
        assert_eq!(allow.on_failure, FailurePolicy::Allow);
        let audit = lenient(&name("a"), "mode = \"audit\"\nbad = 1");
        assert_eq!(audit.mode, Mode::Audit);
        assert_eq!(lenient(&name("a"), "world = \"taint-gate\"\nbad = 1"), NOT_A_POLICY);
        assert_eq!(lenient(&name("upstream-flush"), "world = ["), NOT_A_POLICY);
    }
}
