//! The dependency rule: pure <- foundation <- adapters <- assembly, and who may use which heavy crate.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Breaches;
use crate::run;

/// A layer of the workspace. A package depends on lower layers only, and on its own layer only where [`Layer::peers`]
/// says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    /// Types and decisions: no I/O, no clock, no tasks.
    Pure,
    /// Thin access to the kernel, and the wire contracts.
    Foundation,
    /// One outside each; none depends on another.
    Adapter,
    /// Programs.
    Assembly,
    /// Tests, benches and the build's own tool.
    Tooling,
}

impl Layer {
    fn peers(self) -> bool {
        matches!(self, Self::Pure | Self::Tooling)
    }
}

const LAYERS: &[(&str, Layer)] = &[
    ("aether-domain", Layer::Pure),
    ("aether-conflist", Layer::Pure),
    ("aether-durable", Layer::Foundation),
    ("aether-netns", Layer::Foundation),
    ("aether-api", Layer::Foundation),
    ("aether-cni-server", Layer::Adapter),
    ("aether-handover", Layer::Adapter),
    ("aether-pod-store", Layer::Adapter),
    ("aether-chain-watch", Layer::Adapter),
    ("aether-list-keeper", Layer::Adapter),
    ("aether-telemetry", Layer::Adapter),
    ("aether-module-host", Layer::Adapter),
    ("aether-agent", Layer::Assembly),
    ("aetherctl", Layer::Assembly),
    ("aether-probes", Layer::Assembly),
    ("aether-cni", Layer::Assembly),
    ("aether-cni-install", Layer::Assembly),
    ("aether-harness", Layer::Tooling),
    ("aether-test-cni", Layer::Tooling),
    ("aether-test-libcni", Layer::Tooling),
    ("aether-test-node", Layer::Tooling),
    ("aether-benches", Layer::Tooling),
    ("aether-fuzz", Layer::Tooling),
    ("aether-sim", Layer::Tooling),
    ("aether-module", Layer::Pure),
    ("aether-conflist-reassert", Layer::Pure),
    ("aether-taint-gate", Layer::Pure),
    ("aether-upstream-flush", Layer::Pure),
    ("aether-example-require-annotation", Layer::Pure),
    ("aether-example-refuse-host-ports", Layer::Pure),
    ("aether-example-namespace-list", Layer::Pure),
    ("aether-builtin-modules", Layer::Foundation),
    ("aether-modc", Layer::Assembly),
    ("aether-guest-build", Layer::Foundation),
    ("aether-test-guests", Layer::Tooling),
    ("aether-hostile-guest", Layer::Tooling),
    ("aether-rogue-list", Layer::Tooling),
    ("aether-rogue-taint", Layer::Tooling),
    ("xtask", Layer::Tooling),
];

/// Crates that only these packages may name as a dependency, each with its reason.
const RESERVED: [(&str, &[&str], &str); 8] = [
    ("wasmtime", &["aether-module-host"], "one owner of the engine"),
    ("kube", &["aether-kube-node", "aether-controller"], "the API server is reached in one place"),
    ("envoy-types", &["aether-xds"], "it costs more compile time than the rest together"),
    ("inotify", &["aether-chain-watch", "aether-agent"], "watching is an adapter's work"),
    ("axum", &["aether-agent"], "one HTTP surface"),
    ("prometheus-client", &["aether-telemetry"], "metric names stand in one table"),
    ("cni-plugin", &["aether-cni"], "its types are the plugin's business"),
    (
        "tokio",
        &[
            "aether-cni",
            "aether-cni-server",
            "aether-handover",
            "aether-pod-store",
            "aether-chain-watch",
            "aether-agent",
            "aetherctl",
            "aether-harness",
            "aether-test-cni",
            "aether-test-node",
            "aether-benches",
            "aether-telemetry",
        ],
        "pure and foundation crates know no runtime, nor does the installer",
    ),
];

/// Compares `cargo metadata` with the tables above.
pub(super) fn check() -> Result<Breaches> {
    let text = run::output(run::cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).context("parse cargo metadata")?;
    let packages =
        metadata.get("packages").and_then(Value::as_array).context("cargo metadata lists no packages")?;
    Ok(packages.iter().flat_map(package).collect())
}

fn package(package: &Value) -> Breaches {
    let name = package.get("name").and_then(Value::as_str).unwrap_or_default();
    let Some(layer) = layer(name) else {
        return vec![format!("{name}: has no layer in xtask's table")];
    };
    let mut breaches = Breaches::new();
    for dependency in package.get("dependencies").and_then(Value::as_array).into_iter().flatten() {
        let to = dependency.get("name").and_then(Value::as_str).unwrap_or_default();
        let normal = dependency.get("kind").is_none_or(Value::is_null);
        if !normal {
            continue;
        }
        if let Some(below) = self::layer(to)
            && (below > layer || (below == layer && !layer.peers()))
        {
            breaches.push(format!("{name} ({layer:?}) must not depend on {to} ({below:?})"));
        }
        if let Some((_, allowed, why)) = RESERVED.iter().find(|(reserved, _, _)| *reserved == to)
            && !allowed.contains(&name)
        {
            breaches.push(format!("{name} must not depend on {to}: {why}"));
        }
    }
    breaches
}

fn layer(name: &str) -> Option<Layer> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn depends(name: &str, on: &str) -> Breaches {
        package(&json!({"name": name, "dependencies": [{"name": on, "kind": null}]}))
    }

    #[test]
    fn dependencies_point_inward_and_adapters_never_meet() {
        assert!(depends("aether-pod-store", "aether-domain").is_empty());
        assert!(depends("aether-conflist", "aether-domain").is_empty());
        assert_eq!(depends("aether-pod-store", "aether-cni-server").len(), 1);
        assert_eq!(depends("aether-domain", "aether-durable").len(), 1);
        assert_eq!(depends("aether-domain", "tokio").len(), 1);
        assert_eq!(depends("stranger", "serde").len(), 1);
    }
}
