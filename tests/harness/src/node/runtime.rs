//! A node's containerd: started, stopped, killed, asked, and given lists.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::Node;
use crate::cri::Cri;
use crate::process::Process;
use crate::wait;

/// Within which containerd must serve; a few tenths of a second are usual.
const CONTAINERD_LIMIT: Duration = Duration::from_secs(30);
/// Within which containerd must have looked at a new list; milliseconds are usual.
const RELOAD_LIMIT: Duration = Duration::from_secs(20);

impl Node {
    /// A client of its runtime.
    pub fn cri(&self) -> Cri {
        Cri::new(&self.path("/run/containerd/containerd.sock"), self.cgroup.clone())
    }

    /// Starts containerd and waits until it serves CRI.
    pub async fn start_containerd(&mut self) -> anyhow::Result<()> {
        if self.containerd.is_some() {
            bail!("containerd is started already");
        }
        let mut containerd =
            self.spawn("containerd", "containerd", &["--config", "/etc/containerd-node.toml"])?;
        let cri = self.cri().within(CONTAINERD_LIMIT);
        let serves = wait::until("containerd serving CRI", CONTAINERD_LIMIT, async || {
            if !containerd.is_running() {
                return Ok(false);
            }
            cri.runtime_status().await?;
            Ok(true)
        });
        match serves.await {
            Ok(true) => self.containerd = Some(containerd),
            Ok(false) => bail!("containerd ended: {}", containerd.log()),
            Err(error) => return Err(error.context(containerd.log())),
        }
        Ok(())
    }

    /// The running containerd.
    pub fn containerd(&mut self) -> anyhow::Result<&mut Process> {
        self.containerd.as_mut().context("containerd is not started by this process")
    }

    /// Stops containerd by SIGTERM; pods live on.
    pub fn stop_containerd(&mut self) -> anyhow::Result<()> {
        self.containerd()?.terminate(CONTAINERD_LIMIT)?;
        self.containerd = None;
        Ok(())
    }

    /// Kills containerd; pods live on.
    pub fn kill_containerd(&mut self) -> anyhow::Result<()> {
        self.containerd()?.kill();
        self.containerd = None;
        Ok(())
    }

    /// What containerd has logged since it was started.
    pub fn containerd_log(&self) -> String {
        self.containerd.as_ref().map(Process::log).unwrap_or_default()
    }

    /// Writes a file of net.d the way containerd takes notice of: a temporary name beside it, renamed.
    pub fn write_list(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let dir = self.path(aether_domain::paths::CNI_CONF_DIR);
        let temp = dir.join(".harness.new");
        std::fs::write(&temp, text)
            .and_then(|()| std::fs::rename(&temp, dir.join(name)))
            .with_context(|| format!("cannot write {name} in {}", dir.display()))
    }

    /// Waits until containerd has loaded a list whose plugins are exactly these.
    pub async fn loaded(&self, plugins: &[&str]) -> anyhow::Result<()> {
        let cri = self.cri();
        wait::until(&format!("containerd with the chain {plugins:?}"), RELOAD_LIMIT, async || {
            let status = cri.runtime_status().await?;
            if status.plugins() == plugins {
                return Ok(());
            }
            bail!("it has {:?}, last load {:?}", status.plugins(), status.last_cni_load)
        })
        .await
    }
}
