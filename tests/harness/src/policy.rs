//! An operator's policies on a node.

use std::path::PathBuf;

use aether_domain::paths;
use anyhow::Context as _;

use crate::node::Node;
use crate::tools;

/// The file in which a policy's component is built, beside the programs under test.
pub const REQUIRE_ANNOTATION: &str = "require-annotation.wasm";

impl Node {
    /// Puts a policy into the operator's directory, as a careful operator does: each file beside and renamed over, the
    /// component first.
    pub fn put_policy(&self, name: &str, manifest: &str, component: &[u8]) -> anyhow::Result<()> {
        let directory = self.modules()?;
        for (ending, bytes) in [("wasm", component), ("toml", manifest.as_bytes())] {
            let temp = directory.join(format!(".{name}.{ending}"));
            std::fs::write(&temp, bytes).with_context(|| format!("cannot write {}", temp.display()))?;
            let path = directory.join(format!("{name}.{ending}"));
            std::fs::rename(&temp, &path).with_context(|| format!("cannot rename to {}", path.display()))?;
        }
        Ok(())
    }

    /// Takes a policy away.
    pub fn remove_policy(&self, name: &str) -> anyhow::Result<()> {
        let directory = self.modules()?;
        for ending in ["toml", "wasm"] {
            let path = directory.join(format!("{name}.{ending}"));
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(())
    }

    fn modules(&self) -> anyhow::Result<PathBuf> {
        let directory = self.path(paths::MODULES_DIR);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(directory)
    }
}

/// A built policy's component.
pub fn component(name: &str) -> anyhow::Result<Vec<u8>> {
    let path = tools::program_under_test(name)?;
    std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}
