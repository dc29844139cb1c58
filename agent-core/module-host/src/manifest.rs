//! `module.toml`: what an operator says about a module. Keys and their meaning: `agent-core/docs/formats.md`.

use serde::Deserialize;

use crate::grant::{Capability, Grant};
use crate::limits::{Asked, LimitError, Limits};
use crate::world::World;

/// What is said about a module.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The name, unique on the node; of a built-in module: the module replaces it.
    pub name: Name,
    /// What the module is for.
    pub world: World,
    /// The author's version, shown in status.
    pub version: String,
    /// The pinned digest of the component's file, in lower-case hex.
    pub sha256: Option<String>,
    /// Policies are asked in this order, then by name.
    pub order: i64,
    /// Whether it decides or only reports.
    pub mode: Mode,
    /// What a policy that cannot answer counts as.
    pub on_failure: FailurePolicy,
    /// How a policy's instances live.
    pub instances: Instances,
    /// What it is given.
    pub grant: Grant,
    /// What it may use.
    pub limits: Limits,
    /// What `init` gets, as JSON text.
    pub settings: String,
}

/// A module's name: lower-case letters, digits and `-`, as in `team-annotation`; or what stands for a module without one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl Name {
    /// What stands for something in or around the directory that is no module by its name, as `Team.toml`, and that
    /// nobody must get past all the same. `what` is no module name, so that this is no module's either.
    pub(crate) fn standing_for(what: &str) -> Self {
        Self(what.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if text.is_empty() || text.len() > 63 || !text.chars().all(legal) || text.starts_with('-') {
            let shown: String = text.chars().take(64).collect();
            return Err(format!(
                "{shown:?} is no module name: 1 to 63 lower-case letters, digits and '-', not first a '-'"
            ));
        }
        Ok(Self(text))
    }
}

/// Whether a module decides (M06).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It decides and acts.
    #[default]
    Enforce,
    /// It is asked and reported; it can neither deny nor act.
    Audit,
}

impl Mode {
    /// The mode as `module.toml` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Audit => "audit",
        }
    }
}

/// What a policy that cannot answer counts as (M05).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailurePolicy {
    /// The pod is denied, and tried again.
    #[default]
    Deny,
    /// The policy abstains. Whoever can make the policy fail gets past it: for advisory policies only.
    Allow,
    /// The version that ran before answers, if it is still loaded; else the pod is denied.
    LastGood,
}

impl FailurePolicy {
    /// The policy as `module.toml` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::LastGood => "last-good",
        }
    }
}

/// How a policy's instances live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Instances {
    /// Each pod is evaluated by a fresh instance: nothing is carried from one pod to the next.
    #[default]
    PerCall,
    /// Instances are kept and used again.
    Warm,
}

/// Why a `module.toml` is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is no TOML, has a key that means nothing here, or a value of a wrong type. The text has line and column.
    #[error("module.toml is not valid: {0}")]
    Syntax(String),
    /// Name inside and outside differ.
    #[error(
        "module.toml says name = {inside:?}, but the file or directory is named {outside:?}: make them equal"
    )]
    OtherName {
        /// What the file says.
        inside: String,
        /// What its place says.
        outside: String,
    },
    /// A limit that cannot be.
    #[error("module.toml asks for a limit that cannot be")]
    Limit(#[source] LimitError),
    /// A grant that the world can never have.
    #[error("a module of world {world} can never be granted {}: remove {} from [grant]", .capability.interface(), .capability.how().unwrap_or("it"))]
    Beyond {
        /// The world.
        world: World,
        /// The capability.
        capability: Capability,
    },
    /// A pin that is no digest.
    #[error(
        "sha256 = {0:?} is no digest: 64 lower-case hexadecimal digits, as `sha256sum module.wasm` prints them"
    )]
    Digest(String),
    /// A key that only policies have.
    #[error("`{key}` means nothing for a module of world {world}: only pod policies have it")]
    PolicyOnly {
        /// The key.
        key: &'static str,
        /// The world.
        world: World,
    },
    /// A built-in name with another world.
    #[error("a module named {name:?} replaces the built-in one and must say world = {name:?}, not {world:?}")]
    BuiltinWorld {
        /// The name.
        name: String,
        /// The world that the file says.
        world: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Raw {
    name: Option<Name>,
    world: World,
    #[serde(default)]
    version: String,
    sha256: Option<String>,
    order: Option<i64>,
    #[serde(default)]
    mode: Mode,
    on_failure: Option<FailurePolicy>,
    instances: Option<Instances>,
    #[serde(default)]
    grant: Grant,
    #[serde(default)]
    limits: Asked,
    settings: Option<toml::Table>,
}

impl Manifest {
    /// Reads the text of a `module.toml` found at a place of this name.
    pub fn parse(place: &Name, text: &str) -> Result<Self, ManifestError> {
        let raw: Raw = toml::from_str(text)
            .map_err(|error| ManifestError::Syntax(error.to_string().trim_end().to_owned()))?;
        if let Some(inside) = &raw.name
            && inside != place
        {
            return Err(ManifestError::OtherName { inside: inside.0.clone(), outside: place.0.clone() });
        }
        let builtin =
            World::ALL.into_iter().find(|world| *world != World::PodPolicy && world.name() == place.as_str());
        if let Some(of_name) = builtin
            && of_name != raw.world
        {
            return Err(ManifestError::BuiltinWorld { name: place.0.clone(), world: raw.world.name() });
        }
        if raw.world != World::PodPolicy {
            let policy_only = [
                ("on-failure", raw.on_failure.is_some()),
                ("instances", raw.instances.is_some()),
                ("order", raw.order.is_some()),
                ("grant.change", !raw.grant.change.is_empty()),
            ];
            if let Some((key, _)) = policy_only.into_iter().find(|(_, said)| *said) {
                return Err(ManifestError::PolicyOnly { key, world: raw.world });
            }
        }
        if let Some(capability) = raw.grant.beyond(raw.world) {
            return Err(ManifestError::Beyond { world: raw.world, capability });
        }
        if let Some(digest) = &raw.sha256
            && !(digest.len() == 64
                && digest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)))
        {
            return Err(ManifestError::Digest(digest.chars().take(80).collect()));
        }
        let settings = raw.settings.unwrap_or_default();
        let settings = serde_json::to_string(&settings).map_err(|error| {
            ManifestError::Syntax(format!("[settings] has a value that JSON has not: {error}"))
        })?;
        Ok(Self {
            name: place.clone(),
            world: raw.world,
            version: raw.version,
            sha256: raw.sha256,
            order: raw.order.unwrap_or_default(),
            mode: raw.mode,
            on_failure: raw.on_failure.unwrap_or_default(),
            instances: raw.instances.unwrap_or_default(),
            limits: raw.limits.limits().map_err(ManifestError::Limit)?,
            grant: raw.grant,
            settings,
        })
    }
}

#[cfg(test)]
mod tests;
