//! What a component asks for and offers, read from its bytes: nothing of it runs.

use std::fmt::Write as _;
use std::path::Path;

use aether_domain::text::sha256;
use aether_module_host::grant::Capability;
use aether_module_host::world::World;
use anyhow::{Context as _, bail};
use serde::Serialize;
use wit_component::DecodedWasm;

use crate::table::printable;

/// What was read.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seen {
    sha256: String,
    bytes: usize,
    /// The world whose export it has; `None` where it has none of ours.
    world: Option<&'static str>,
    /// The contract's version that it was built for, by the export.
    contract: Option<String>,
    imports: Vec<String>,
    exports: Vec<String>,
    /// Lines for `[grant]`.
    grant: Vec<String>,
    /// What no agent offers.
    unknown: Vec<String>,
}

/// Reads a component's file.
pub(super) fn file(path: &Path) -> anyhow::Result<Seen> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let decoded = wit_component::decode(&bytes)
        .with_context(|| format!("{} is no component; `aetherctl policy pack` makes one", path.display()))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        bail!("{} is a WIT package and no component", path.display());
    };
    let world = resolve.worlds.get(world).context("the component has no world")?;
    let imports = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
    let exports = world.exports.keys().map(|key| resolve.name_world_key(key)).collect();
    Ok(judge(sha256(&bytes), bytes.len(), imports, exports))
}

fn judge(sha256: String, bytes: usize, imports: Vec<String>, exports: Vec<String>) -> Seen {
    let bare = |name: &String| name.split('@').next().unwrap_or_default().to_owned();
    let capability =
        |name: &String| Capability::ALL.into_iter().find(|capability| capability.interface() == bare(name));
    let needed: Vec<Capability> = imports.iter().filter_map(capability).collect();
    let shapes = |name: &String| bare(name) == "aether:base/types";
    let unknown =
        imports.iter().filter(|name| capability(name).is_none() && !shapes(name)).cloned().collect();
    let exported: Vec<String> = exports.iter().map(bare).collect();
    let fits = |world: &World| {
        exported.iter().any(|name| name == world.export())
            && needed.iter().all(|capability| capability.fits(*world))
    };
    let world = World::ALL.into_iter().find(fits);
    let contract = world.and_then(|world| {
        let of = |name: &&String| bare(name) == world.export();
        Some(exports.iter().find(of)?.split_once('@')?.1.to_owned())
    });
    let world = world.map(World::name);
    let grant = needed.into_iter().filter_map(Capability::how).map(str::to_owned).collect();
    Seen { sha256, bytes, world, contract, imports, exports, grant, unknown }
}

impl Seen {
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let world = self.world.unwrap_or("none of ours: it does not export what a module must");
        let _ = writeln!(text, "world    {world}");
        if let Some(contract) = &self.contract {
            let _ = writeln!(text, "contract {}", printable(contract));
        }
        let _ = writeln!(text, "size     {} bytes\nsha256   {}", self.bytes, self.sha256);
        for (what, names) in [("imports", &self.imports), ("exports", &self.exports)] {
            let _ = writeln!(text, "{what}");
            for name in names {
                let _ = writeln!(text, "  {}", printable(name));
            }
        }
        if self.grant.is_empty() {
            text.push_str("grant    nothing has to be granted\n");
        } else {
            text.push_str("grant    the smallest, for [grant] of module.toml; name your own objects\n");
            for line in &self.grant {
                let _ = writeln!(text, "  {line}");
            }
        }
        for name in &self.unknown {
            let _ = writeln!(text, "no agent offers {}: such a module is refused", printable(name));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(imports: &[&str], export: &str) -> Seen {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        judge("d".repeat(64), 1, owned(imports), owned(&[export]))
    }

    #[test]
    fn m12_world_and_smallest_grant_follow_from_imports_and_exports() {
        let policy = seen(&["aether:base/types@0.1.0", "aether:base/log@0.1.0"], "aether:policy/pods@0.1.0");
        assert_eq!((policy.world, policy.grant.len()), (Some("pod-policy"), 0));
        let gate = seen(&["aether:node/taint@0.1.0"], "aether:behaviour/lifecycle@0.1.0");
        assert_eq!((gate.world, gate.contract.as_deref()), (Some("taint-gate"), Some("0.1.0")));
        assert!(gate.table().contains("node.remove-taints"), "{}", gate.table());
        let wasi = seen(&["wasi:io/streams@0.2.0"], "run");
        assert_eq!(wasi.world, None);
        assert!(wasi.table().contains("no agent offers wasi:io/streams@0.2.0"), "{}", wasi.table());
    }
}
