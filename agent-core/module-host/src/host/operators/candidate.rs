//! What was read of one module of the operator, and what can be told of it although it is not taken (M05).

use std::path::Path;

use aether_domain::text::{error_chain, sha256};

use crate::failure::LoadError;
use crate::files;
use crate::layout::{LayoutError, Place, Refused};
use crate::limits::Limits;
use crate::manifest::{FailurePolicy, Manifest, Mode, Name};
use crate::policy::Terms;
use crate::reload::Fingerprint;
use crate::world::World;

/// What was read of one module.
pub(super) struct Candidate {
    pub(super) manifest: Result<Manifest, LoadError>,
    pub(super) component: Result<Vec<u8>, LoadError>,
    /// What it is for; nothing where that cannot be told.
    pub(super) world: Option<World>,
    /// What it says about itself as a policy.
    pub(super) terms: Terms,
    pub(super) print: Fingerprint,
}

impl Candidate {
    /// What it may use: the defaults where its manifest is not taken.
    pub(super) fn limits(&self) -> Limits {
        self.manifest.as_ref().map(|manifest| manifest.limits.clone()).unwrap_or_default()
    }

    /// Reads the module at a place.
    pub(super) fn read(directory: &Path, place: &Place) -> Self {
        let missing = || LoadError::Missing { path: directory.join(&place.component) };
        let text = match files::manifest_text(directory, &place.manifest) {
            Ok(text) => text,
            Err(error) => {
                let print = Fingerprint(error_chain(&error));
                let (world, terms) = said(&place.name, "");
                return Self { manifest: Err(error), component: Err(missing()), world, terms, print };
            }
        };
        let path = directory.join(&place.manifest);
        let manifest =
            Manifest::parse(&place.name, &text).map_err(|source| LoadError::Manifest { path, source });
        let component = match &manifest {
            Ok(manifest) => files::component(directory, place, manifest.limits.component),
            Err(_) => Err(missing()),
        };
        let of_component = match &component {
            Ok(bytes) => sha256(bytes),
            Err(error) => error_chain(error),
        };
        let (world, terms) = match &manifest {
            Ok(manifest) => (Some(manifest.world), Terms::of(manifest)),
            Err(_) => said(&place.name, &text),
        };
        let print = Fingerprint(format!("{} {of_component}", sha256(text.as_bytes())));
        Self { manifest, component, world, terms, print }
    }

    /// What is not taken for its name or place. Nothing where it is no module at all: a directory without a manifest
    /// whose name no module can have, as `lost+found`.
    pub(super) fn refused(directory: &Path, refused: &Refused) -> Option<Self> {
        let text = refused.manifest.as_ref().map(|manifest| files::manifest_text(directory, manifest));
        if let (LayoutError::Name { .. }, Some(Err(LoadError::Missing { path }))) = (&refused.why, &text)
            && path.ends_with("module.toml")
        {
            return None;
        }
        let text = text.and_then(Result::ok).unwrap_or_default();
        let (world, terms) = said(&refused.name, &text);
        let error = || LoadError::Layout(refused.why.clone());
        let print = Fingerprint(format!("{} {}", refused.why, sha256(text.as_bytes())));
        Some(Self { manifest: Err(error()), component: Err(error()), world, terms, print })
    }
}

/// What a manifest says although it is not taken, world and terms: what it says about failure holds for itself too.
fn said(name: &Name, text: &str) -> (Option<World>, Terms) {
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let value = |key: &str| table.get(key).and_then(toml::Value::as_str);
    let named = |name: &str| World::ALL.into_iter().find(|world| world.name() == name);
    let of_name = named(name.as_str()).filter(|world| *world != World::PodPolicy);
    let world = of_name.or_else(|| value("world").and_then(named));
    let on_failure = match value("on-failure") {
        Some("allow") => FailurePolicy::Allow,
        Some("last-good") => FailurePolicy::LastGood,
        _ => FailurePolicy::Deny,
    };
    let mode = if value("mode") == Some("audit") { Mode::Audit } else { Mode::Enforce };
    (world, Terms { mode, on_failure, ..Terms::STRICT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m05_a_manifest_that_is_not_taken_keeps_what_it_says_about_failure() {
        let name = |text: &str| Name::try_from(text.to_owned()).unwrap();
        assert_eq!(said(&name("a"), "world = ["), (None, Terms::STRICT));
        let (world, allow) = said(&name("a"), "world = \"pod-policy\"\non-failure = \"allow\"\nbad = 1");
        assert_eq!((world, allow.on_failure), (Some(World::PodPolicy), FailurePolicy::Allow));
        let (_, audit) = said(&name("a"), "mode = \"audit\"\nbad = 1");
        assert_eq!(audit.mode, Mode::Audit);
        assert_eq!(said(&name("a"), "world = \"taint-gate\"\nbad = 1").0, Some(World::TaintGate));
        assert_eq!(said(&name("upstream-flush"), "world = [").0, Some(World::UpstreamFlush));
        assert_eq!(said(&name("pod-policy"), "world = [").0, None);
    }
}
