//! Taking a module of the operator, refusing it, letting it go. A name is a behaviour's or a policy's, never both.

use std::sync::{Arc, PoisonError};

use aether_domain::text::error_chain;

use super::Candidate;
use crate::failure::LoadError;
use crate::host::{Host, lock};
use crate::limits::Limits;
use crate::manifest::Name;
use crate::policy::{Policy, Terms, trial};
use crate::state::Shared;
use crate::version::{SharedVersion, Version};
use crate::world::World;

impl Host {
    /// What a module is for, as far as can be told. What cannot be told is what runs under the name; else it counts as a
    /// policy, so that nobody gets past it.
    pub(super) fn purpose(&self, name: &Name, candidate: &Candidate) -> World {
        let running = || lock(&self.slots).get(name).map(|slot| slot.world);
        candidate.world.or_else(running).unwrap_or(World::PodPolicy)
    }

    /// Whether there is a module of this name, as a behaviour or as a policy.
    pub(super) fn stands(&self, name: &Name) -> bool {
        lock(&self.slots).contains_key(name) || self.is_policy(name)
    }

    /// A policy that is new answers by its failure policy until it is taken. A behaviour that had the name ends.
    pub(super) fn announce(&self, name: &Name, candidate: &Candidate) {
        if self.purpose(name, candidate) != World::PodPolicy || self.is_policy(name) {
            return;
        }
        self.swap(name, |policy| Policy {
            terms: candidate.terms.clone(),
            problem: "it is being compiled and tried".to_owned(),
            shared: Shared::new(name.clone(), self.began, &candidate.limits()),
            ..policy
        });
        self.forget_behaviour(name);
    }

    /// Takes a version that can be loaded; else what runs goes on, and status says what is wrong with the files.
    pub(super) fn take(&self, name: &Name, candidate: Candidate) -> Result<(), String> {
        self.announce(name, &candidate);
        let (world, terms) = (self.purpose(name, &candidate), candidate.terms.clone());
        if world != World::PodPolicy {
            self.make_way(name, world);
        }
        if !self.stands(name) {
            // It has a status from here on, whatever comes of it.
            self.slot(name, world, &candidate.limits()).map_err(|error| error_chain(&error))?;
        }
        let version = candidate.manifest.and_then(|manifest| {
            let component = candidate.component?;
            let runtime = &self.surroundings.runtime;
            Version::operator(runtime, &self.cache, self.compiler.as_ref(), manifest, &component)
        });
        let taken = match version.map(Arc::new) {
            Ok(version) if version.manifest.world == World::PodPolicy => {
                self.take_policy(name, version, &terms)
            }
            Ok(version) => self.take_behaviour(name, version),
            Err(error) => Err(error_chain(&error)),
        };
        taken.inspect_err(|text| self.refuse(name, world, &terms, text))
    }

    /// What has the name of a behaviour, is for something else and never ran has nothing that could go on.
    fn make_way(&self, name: &Name, world: World) {
        if self.policies().iter().any(|policy| policy.name == *name && policy.current.is_none()) {
            self.forget_policy(name);
        }
        let slot = lock(&self.slots).get(name).cloned();
        if slot.is_some_and(|slot| slot.world != world && !slot.has_version()) {
            self.forget_behaviour(name);
        }
    }

    fn take_policy(&self, name: &Name, version: SharedVersion, terms: &Terms) -> Result<(), String> {
        let shared = self.shared(name, &version.manifest.limits);
        trial(&version, &shared, &self.surroundings)
            .map_err(|failure| error_chain(&LoadError::Trial(failure)))?;
        self.swap(name, |policy| Policy {
            previous: policy.current.clone(),
            current: Some(version),
            terms: terms.clone(),
            problem: String::new(),
            ..policy
        });
        Ok(())
    }

    fn take_behaviour(&self, name: &Name, version: SharedVersion) -> Result<(), String> {
        let world = version.manifest.world;
        let same = lock(&self.slots).get(name).filter(|slot| slot.world == world).cloned();
        if let Some(slot) = same {
            return slot.replace(version).map_err(|error| error_chain(&error));
        }
        // What has the name is for something else: it goes once the new one has started.
        let slot =
            self.new_slot(name, world, &version.manifest.limits).map_err(|error| error_chain(&error))?;
        if let Err(error) = slot.replace(version) {
            slot.stop();
            return Err(error_chain(&error));
        }
        self.forget_behaviour(name);
        self.forget_policy(name);
        lock(&self.slots).insert(name.clone(), slot.clone());
        self.surroundings.ports.behaviours_changed();
        // A takeover in between did not reach it.
        slot.own(self.role());
        Ok(())
    }

    /// What runs goes on, and status says what is wrong with the files.
    pub(super) fn refuse(&self, name: &Name, world: World, terms: &Terms, text: &str) {
        if world == World::PodPolicy || self.is_policy(name) {
            return self.swap(name, |policy| {
                let running = policy.current.is_some();
                let terms = if running { policy.terms.clone() } else { terms.clone() };
                Policy { terms, problem: text.to_owned(), ..policy }
            });
        }
        let slot = lock(&self.slots).get(name).cloned();
        if let Some(slot) = slot {
            slot.problem(text.to_owned());
        }
    }

    /// Lets a module go whose files are gone.
    pub(super) fn remove(&self, name: &Name) {
        if let Some((_, builtin, manifest)) = self.builtins.iter().find(|(builtin, ..)| builtin == name) {
            if let Ok(slot) = self.slot(name, manifest.world, &manifest.limits) {
                self.load_builtin(&slot, builtin, manifest);
            }
            return;
        }
        self.forget_behaviour(name);
        self.forget_policy(name);
    }

    fn forget_behaviour(&self, name: &Name) {
        let slot = lock(&self.slots).remove(name);
        if let Some(slot) = slot {
            slot.stop();
            self.surroundings.ports.behaviours_changed();
        }
    }

    pub(super) fn forget_policy(&self, name: &Name) {
        let mut policies = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        let left = policies.iter().filter(|policy| policy.name != *name).cloned().collect();
        *policies = Arc::new(left);
    }

    fn is_policy(&self, name: &Name) -> bool {
        self.policies().iter().any(|policy| policy.name == *name)
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
