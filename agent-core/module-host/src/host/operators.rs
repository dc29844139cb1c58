//! The operator's modules: what a look at their directory changes (M08).

mod candidate;
mod take;

use std::collections::BTreeMap;
use std::path::Path;

use super::{Host, lock};
use crate::failure::LoadError;
use crate::files;
use crate::manifest::{Manifest, Name};
use crate::policy::Terms;
use crate::reload::{Change, Fingerprint, changes};
use crate::world::World;
use candidate::Candidate;

/// What was loaded of the directory; nothing before it was read for the first time.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    prints: Option<BTreeMap<Name, Fingerprint>>,
}

/// What a look at the directory came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescanned {
    /// What was done, by module.
    pub changes: Vec<(Name, Result<What, String>)>,
    /// What is in the directory and no module, and why; or why the directory cannot be read.
    pub problems: Vec<String>,
    /// Whether the directory could be read.
    pub directory: Looked,
}

/// Whether a look at the directory saw what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// All of it.
    Read,
    /// Nothing: it is to be tried again, whether something there changes or not.
    Unreadable,
}

/// What was done about a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A new version runs.
    Loaded,
    /// It is gone; of a built-in name: the built-in one runs again.
    Removed,
}

impl Host {
    /// Looks at the directory of operator modules and takes what changed. Compiles what is not in the cache, so it may
    /// take long: on a blocking thread. Calls go on with what was loaded meanwhile.
    pub fn rescan(&self) -> Rescanned {
        self.rescan_announcing(|| {})
    }

    /// The same; `announced` is called once every policy in the directory is known: from then on nobody gets past one
    /// that is still being compiled, since its failure policy answers. Where the directory cannot be read, and never was,
    /// it stands as a policy that denies.
    pub fn rescan_announcing(&self, announced: impl FnOnce()) -> Rescanned {
        let mut loaded = lock(&self.operators);
        let Some(directory) = self.config.directory.clone() else {
            announced();
            return Rescanned { changes: Vec::new(), problems: Vec::new(), directory: Looked::Read };
        };
        let found = match files::list(&directory) {
            Ok(found) => found,
            Err(error) => {
                let so = if loaded.prints.is_some() {
                    "what was loaded stays"
                } else {
                    "until it is, no pod starts that policies are asked about"
                };
                let text =
                    format!("cannot read the directory of modules {}: {error}; {so}", directory.display());
                *lock(&self.problems) = vec![text.clone()];
                if loaded.prints.is_none() {
                    self.refuse(&unread(&directory), World::PodPolicy, &Terms::STRICT, &text);
                }
                announced();
                return Rescanned {
                    changes: Vec::new(),
                    problems: vec![text],
                    directory: Looked::Unreadable,
                };
            }
        };
        let problems = found.problems();
        lock(&self.problems).clone_from(&problems);
        let mut candidates = BTreeMap::new();
        for place in &found.places {
            candidates.insert(place.name.clone(), Candidate::read(&directory, place));
        }
        for refused in found.refused {
            let Some(candidate) = Candidate::refused(&directory, &refused) else { continue };
            // A behaviour that does not run: nothing waits for it, and the problems name it.
            if self.purpose(&refused.name, &candidate) == World::PodPolicy || self.stands(&refused.name) {
                candidates.insert(refused.name, candidate);
            }
        }
        let prints =
            candidates.iter().map(|(name, candidate)| (name.clone(), candidate.print.clone())).collect();
        let todo = changes(loaded.prints.as_ref().unwrap_or(&BTreeMap::new()), &prints);
        // Policies that are new are there before they are compiled: until then their failure policy answers.
        for (name, change) in &todo {
            if let (Change::Load, Some(candidate)) = (change, candidates.get(name)) {
                self.announce(name, candidate);
            }
        }
        if loaded.prints.is_none() {
            self.forget_policy(&unread(&directory));
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
        loaded.prints = Some(prints);
        Rescanned { changes: done, problems, directory: Looked::Read }
    }

    /// What is in the directory and no module, as the last look found it. Waits for nothing that is compiled.
    pub fn problems(&self) -> Vec<String> {
        lock(&self.problems).clone()
    }

    /// Takes a module that lies in no directory: for tools that try one out. The error says why an agent would not.
    pub fn offer(&self, name: &Name, manifest: &str, component: Vec<u8>) -> Result<(), String> {
        let path = std::path::PathBuf::from("module.toml");
        let manifest = Manifest::parse(name, manifest).map_err(|source| LoadError::Manifest { path, source });
        let limit = manifest.as_ref().map_or(usize::MAX, |manifest| manifest.limits.component);
        let component =
            if component.len() > limit { Err(LoadError::TooLarge { limit }) } else { Ok(component) };
        let world = manifest.as_ref().ok().map(|manifest| manifest.world);
        let terms = manifest.as_ref().map_or(Terms::STRICT, Terms::of);
        let print = Fingerprint(String::new());
        self.take(name, Candidate { manifest, component, world, terms, print })
    }
}

/// What a directory that was never read stands as: a policy whose name no module can have.
fn unread(directory: &Path) -> Name {
    Name::standing_for(&directory.display().to_string())
}
