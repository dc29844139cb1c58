//! What a node has of ours: the programs under test, installed and run as on a real one.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::process::Output;
use std::time::Duration;

use aether_domain::paths;
use aether_domain::record::Record;
use anyhow::{Context as _, bail};

use crate::node::Node;
use crate::process::Process;
use crate::{tools, wait};

/// The installer.
pub const INSTALLER: &str = "aether-cni-install";
/// Every program under test that a node gets.
pub const PROGRAMS: [&str; 5] =
    [paths::PLUGIN, INSTALLER, "aether-agent", "aetherctl", paths::MODULE_COMPILER];
/// Within which an agent must serve; a few hundredths of a second are usual.
const AGENT_LIMIT: Duration = Duration::from_secs(20);

/// A running agent. Dropping it kills it.
#[derive(Debug)]
pub struct Agent(Process);

impl Deref for Agent {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.0
    }
}

impl DerefMut for Agent {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

impl Agent {
    /// Lets it live on after this process.
    pub fn leave(self) {
        self.0.leave();
    }
}

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

    /// Starts an agent and does not wait.
    pub fn spawn_agent(&self, arguments: &[&str]) -> anyhow::Result<Agent> {
        self.bring_programs()?;
        self.spawn("agent", "aether-agent", arguments).map(Agent)
    }

    /// Starts an agent and waits until it serves the plugin.
    pub async fn start_agent(&self) -> anyhow::Result<Agent> {
        self.start_agent_with(&[]).await
    }

    /// The same with arguments.
    pub async fn start_agent_with(&self, arguments: &[&str]) -> anyhow::Result<Agent> {
        let mut agent = self.spawn_agent(arguments)?;
        self.serving(&mut agent).await?;
        Ok(agent)
    }

    /// Waits until an agent serves the plugin, so that its socket takes a connection.
    pub async fn serving(&self, agent: &mut Agent) -> anyhow::Result<()> {
        let socket = self.path(paths::CNI_SOCKET_PATH);
        let serves = wait::until("the agent serving the plugin", AGENT_LIMIT, async || {
            if !agent.is_running() {
                return Ok(false);
            }
            tokio::net::UnixStream::connect(&socket)
                .await
                .with_context(|| format!("{}", socket.display()))?;
            Ok(true)
        });
        match serves.await {
            Ok(true) => Ok(()),
            Ok(false) => bail!("the agent ended: {}", agent.log()),
            Err(error) => Err(error.context(agent.log())),
        }
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

    /// The names in a directory of the node, hidden temporary files of ours apart; none when there is no directory.
    pub fn files(&self, inside: &str) -> anyhow::Result<Vec<String>> {
        let dir = self.path(inside);
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", dir.display())),
        };
        let mut names: Vec<_> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with(paths::TEMP_PREFIX));
        names.sort();
        Ok(names)
    }
}
