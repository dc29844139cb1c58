//! A node with two agents and load on it, and who is killed there.

mod tally;

use std::time::{Duration, Instant};

use aether_domain::paths;
use aether_harness::load::{Load, Record};
use aether_harness::plugin::{Attachment, Plugin};
use aether_harness::roll::{CLIENTS, PACE};
use aether_harness::{Agent, Containerd, INSTALLER, Node, Options, Signal, Start, was_killed};
use anyhow::{Context as _, Result, ensure};

use crate::chance::Chance;
pub(crate) use tally::Tally;

/// How long an ADD waits: one that fails found no agent for so long, however they are killed. The installer that is killed
/// writes now one and now the other, so that it has something to write.
const DEADLINES: [&str; 2] = ["29", "30"];
/// Within which an agent is killed after its turn has come.
const AGENT_LIFE: Duration = Duration::from_millis(150);
/// Within which it is killed after SIGTERM.
const AGENT_DEATH: Duration = Duration::from_millis(30);
/// How often a DEL may be killed before it is let through.
const DELS: usize = 3;

/// The node.
#[derive(Debug)]
pub(crate) struct Scene {
    node: Node,
    agents: [Agent; 2],
    started: u32,
    plugin: Plugin,
    netns: String,
    /// How long the installer and a call of the plugin take when nobody kills them.
    lengths: (Duration, Duration),
    tally: Tally,
    /// The pods of the killed plugins that live.
    kept: Record,
}

impl Scene {
    /// Lays it out.
    pub(crate) async fn begin() -> Result<Self> {
        let node = Node::start(Options::flannel(Containerd::V2)).await?;
        node.install(&["--add-deadline-seconds", DEADLINES[0]])?;
        let begin = Instant::now();
        node.install(&["--add-deadline-seconds", DEADLINES[1]])?;
        let install = begin.elapsed();
        node.loaded(&["flannel", "portmap", paths::PLUGIN]).await?;
        let mut owner = node.spawn_one(&Start::named("agent-0"))?;
        owner.owns().await?;
        let standby = node.spawn_one(&Start::named("agent-1"))?;
        let plugin = Plugin::of(&node)?;
        let netns = Plugin::namespaces(&node, 1)?.pop().context("no namespace")?;
        let to = Attachment { container: "first".to_owned(), pod: "first".to_owned(), netns: netns.clone() };
        let begin = Instant::now();
        for command in ["ADD", "DEL"] {
            ensure!(plugin.call(command, &to)?.status.success(), "the first {command} failed");
        }
        let call = begin.elapsed() / 2;
        Ok(Self {
            node,
            agents: [owner, standby],
            started: 2,
            plugin,
            netns,
            lengths: (install, call),
            tally: Tally::default(),
            kept: Record::default(),
        })
    }

    /// Kills under load until there are `until` kills, and audits.
    pub(crate) async fn chapter(&mut self, mut done: u32, until: u32, chance: &mut Chance) -> Result<u32> {
        let loads = [Load::runtime(&self.node, CLIENTS), Load::plugin(&self.node, PACE)?];
        for load in &loads {
            load.flows().await?;
        }
        while done < until {
            let killed = match chance.below(10) {
                0..5 => self.agent(chance)?,
                5..7 => self.installer(chance)?,
                _ => self.plugin(chance)?,
            };
            done += u32::from(killed);
        }
        for load in &loads {
            load.flows().await?;
        }
        let mut record = std::mem::take(&mut self.kept);
        for load in loads {
            record.add(load.stop().await?);
        }
        let findings = self.node.audit_settled(&self.node.living(&record).await?).await?;
        self.node.end_pods(&record).await?;
        self.netns = Plugin::namespaces(&self.node, 1)?.pop().context("no namespace")?;
        println!("{done:>5} kills: {findings}");
        self.tally.chapter(&record, findings);
        Ok(done)
    }

    /// The installer is let through, and its list is the one that is loaded.
    pub(crate) async fn end(self) -> Result<Tally> {
        self.node.install(&["--add-deadline-seconds", DEADLINES[1]])?;
        self.node.loaded(&["flannel", "portmap", paths::PLUGIN]).await?;
        Ok(self.tally)
    }

    /// Kills one of the two agents, one time in three after SIGTERM, and starts another in its place.
    fn agent(&mut self, chance: &mut Chance) -> Result<bool> {
        let [first, second] = &mut self.agents;
        let doomed = if chance.below(2) == 0 { first } else { second };
        // pause: the moment of the kill is what is random here
        std::thread::sleep(chance.time(AGENT_LIFE));
        if chance.below(3) == 0 {
            doomed.signal(Signal::TERM);
            // pause: as above
            std::thread::sleep(chance.time(AGENT_DEATH));
        }
        let lived = doomed.is_running();
        doomed.kill();
        self.tally.agents += u32::from(lived);
        *doomed = self.node.spawn_one(&Start::named(&format!("agent-{}", self.started)))?;
        self.started += 1;
        Ok(lived)
    }

    /// Kills an installer on its way; what it leaves must be whole.
    fn installer(&mut self, chance: &mut Chance) -> Result<bool> {
        let limit = chance.time(self.lengths.0);
        let deadline = if chance.below(2) == 0 { DEADLINES[0] } else { DEADLINES[1] };
        let mut installer = self.node.command_killed_after(limit, INSTALLER);
        installer.args(["--add-deadline-seconds", deadline]);
        let output = installer.output().context("run the installer")?;
        let killed = was_killed(output.status);
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(killed || output.status.success(), "the installer failed: {said}");
        self.tally.installers += u32::from(killed);
        for name in [aether_harness::lists::FLANNEL_FILE, paths::WANTED] {
            let path = self.node.path(paths::CNI_CONF_DIR).join(name);
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            if serde_json::from_str::<serde_json::Value>(&text).is_err() || !text.contains(paths::PLUGIN) {
                self.tally.findings.torn.push(format!("{name} after a killed installer: {text}"));
            }
        }
        Ok(killed)
    }

    /// Kills a plugin in its ADD, in its DEL, or in both. What was added is deleted in the end, or stays alive.
    fn plugin(&mut self, chance: &mut Chance) -> Result<bool> {
        let name = format!("doomed-{}", self.tally.pairs);
        self.tally.pairs += 1;
        let to = Attachment { container: name.clone(), pod: name, netns: self.netns.clone() };
        // An ADD may wait for an agent; there the moment is one of the wait.
        let limit = self.lengths.1 * 2;
        let mut kills = 0;
        let added = self.plugin.killed_after(chance.time(limit)).call("ADD", &to)?.status;
        kills += u32::from(was_killed(added));
        if added.success() && chance.below(4) == 0 {
            self.kept.living.insert(to.container);
            return Ok(false);
        }
        let mut deleted = false;
        for _ in 0..DELS {
            let status = self.plugin.killed_after(chance.time(limit)).call("DEL", &to)?.status;
            kills += u32::from(was_killed(status));
            deleted |= status.success();
            if deleted {
                break;
            }
        }
        if !deleted {
            let output = self.plugin.call("DEL", &to)?;
            let said = String::from_utf8_lossy(&output.stdout);
            ensure!(output.status.success(), "the DEL of {} failed: {said}", to.container);
        }
        self.tally.plugins += kills;
        Ok(kills > 0)
    }
}
