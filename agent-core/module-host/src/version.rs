//! One version of a module: checked, compiled, linked.

use std::sync::{Arc, Mutex, PoisonError};

use aether_domain::text::{error_chain, sha256};

use crate::cache::{Cache, Looked};
use crate::compiler::Compiler;
use crate::engine::Runtime;
use crate::failure::LoadError;
use crate::files;
use crate::instance::Instance;
use crate::manifest::Manifest;
use crate::prepared::Prepared;
use crate::status::Source;
use crate::strikes::Strikes;
use crate::sys::Trusted;

/// What can be instantiated.
pub(crate) struct Version {
    pub(crate) manifest: Manifest,
    pub(crate) digest: String,
    pub(crate) source: Source,
    pub(crate) prepared: Prepared,
    pub(crate) strikes: Mutex<Strikes>,
    /// Instances that wait to be used again, for policies that ask for it.
    pub(crate) warm: Mutex<Vec<Instance>>,
}

/// A module that is part of the agent: compiled when the agent was built, and as trusted.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its `module.toml`.
    pub manifest: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The digest of its component.
    pub digest: &'static str,
    /// Its component, compiled for this target.
    pub artefact: &'static [u8],
}

impl Version {
    /// Prepares a built-in module.
    pub(crate) fn builtin(
        runtime: &Runtime,
        builtin: &Builtin,
        manifest: Manifest,
    ) -> Result<Self, LoadError> {
        let prepared = Prepared::new(runtime, Trusted::vouch(builtin.artefact), &manifest)?;
        Ok(Self::new(manifest, builtin.digest.to_owned(), Source::Builtin, prepared))
    }

    /// Checks an operator's component, compiles it where the cache does not have it, and prepares it.
    pub(crate) fn operator(
        runtime: &Runtime,
        cache: &Cache,
        compiler: &dyn Compiler,
        manifest: Manifest,
        component: &[u8],
    ) -> Result<Self, LoadError> {
        files::kind(component)?;
        let digest = sha256(component);
        if let Some(pinned) = &manifest.sha256
            && *pinned != digest
        {
            return Err(LoadError::Digest { found: digest, pinned: pinned.clone() });
        }
        match cache.get(&digest) {
            Looked::Hit(artefact) => match Prepared::new(runtime, Trusted::vouch(&artefact), &manifest) {
                // Authentic, but of an engine with other flags: compiled again like any stale one.
                Err(LoadError::Artefact(cause)) => {
                    tracing::info!(module = %manifest.name, %cause, "a compiled module is stale, compiling it again");
                }
                other => return Ok(Self::new(manifest, digest, Source::Operator, other?)),
            },
            Looked::Miss => {}
            Looked::Unusable(why) => {
                tracing::warn!(module = %manifest.name, why, "a compiled module cannot be used, compiling it again");
            }
        }
        let artefact = compiler.compile(component).map_err(LoadError::Compile)?;
        let prepared = Prepared::new(runtime, Trusted::vouch(&artefact), &manifest)?;
        if let Err(error) = cache.put(&digest, &artefact) {
            let error = error_chain(&error);
            tracing::warn!(module = %manifest.name, error, "the compiled module is not kept; it is compiled again at the next start");
        }
        Ok(Self::new(manifest, digest, Source::Operator, prepared))
    }

    fn new(manifest: Manifest, digest: String, source: Source, prepared: Prepared) -> Self {
        Self { manifest, digest, source, prepared, strikes: Mutex::default(), warm: Mutex::default() }
    }

    pub(crate) fn strikes<R>(&self, with: impl FnOnce(&mut Strikes) -> R) -> R {
        with(&mut self.strikes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An instance that waits, if there is one.
    pub(crate) fn take_warm(&self) -> Option<Instance> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps an instance for the next call.
    pub(crate) fn keep_warm(&self, instance: Instance) {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        if warm.len() < WARM_MAX && !instance.is_broken() {
            warm.push(instance);
        }
    }
}

/// How many instances of one policy wait to be used again; more than that run only in a burst.
const WARM_MAX: usize = 8;

/// A version that several hold: those that call it, and the one that replaces it.
pub(crate) type SharedVersion = Arc<Version>;
