//! What a node has of ours: the programs under test, installed as on a real one, and the state that they keep.

use std::collections::BTreeMap;
use std::process::Output;

use aether_domain::paths;
use aether_domain::record::Record;
use anyhow::{Context as _, bail};

use crate::agents::AGENT;
use crate::node::Node;
use crate::tools;

/// The installer.
pub const INSTALLER: &str = "aether-cni-install";
/// Every program under test that a node gets.
pub const PROGRAMS: [&str; 5] = [paths::PLUGIN, INSTALLER, AGENT, "aetherctl", paths::MODULE_COMPILER];

impl Node {
    /// Puts the programs under test into the node's PATH.
    pub fn bring_programs(&self) -> anyhow::Result<()> {
        for name in PROGRAMS {
            tools::copy(&tools::program_under_test(name)?, &self.dir().join("bin").join(name))?;
        }
        Ok(())
    }

    /// Runs the installer to its end, whatever that is.
    pub fn installer(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.bring_programs()?;
        self.command(INSTALLER).args(arguments).output().context("cannot run the installer")
    }

    /// Installs; anything but success is an error that shows what the installer said.
    pub fn install(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = self.installer(arguments)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{INSTALLER} {arguments:?} failed ({}): {}", output.status, said.trim());
        }
        Ok(())
    }

    /// The records on disk, by container id. A file that is no record is an error: none may ever be torn.
    pub fn records(&self) -> anyhow::Result<BTreeMap<String, Record>> {
        let mut records = BTreeMap::new();
        for name in self.files(&format!("{}/{}", paths::STATE_DIR, paths::PODS))? {
            if !name.ends_with(paths::RECORD_SUFFIX) {
                continue;
            }
            let path = self.path(&format!("{}/{}/{name}", paths::STATE_DIR, paths::PODS));
            let bytes = match std::fs::read(&path) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            };
            let record: Record = serde_json::from_slice(&bytes)
                .with_context(|| format!("{name} is no record: {}", String::from_utf8_lossy(&bytes)))?;
            records.insert(record.key.container.as_str().to_owned(), record);
        }
        Ok(records)
    }

    /// The names of the tombstones.
    pub fn tombstones(&self) -> anyhow::Result<Vec<String>> {
        self.files(&format!("{}/{}", paths::STATE_DIR, paths::DELETES))
    }

    /// The names in a directory of the node, temporary files of ours apart; none when there is no directory.
    pub fn files(&self, inside: &str) -> anyhow::Result<Vec<String>> {
        let mut names = self.all_files(inside)?;
        names.retain(|name| !name.starts_with(paths::TEMP_PREFIX));
        Ok(names)
    }

    /// All names in a directory of the node; none when there is no directory.
    pub(crate) fn all_files(&self, inside: &str) -> anyhow::Result<Vec<String>> {
        let dir = self.path(inside);
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", dir.display())),
        };
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
}
