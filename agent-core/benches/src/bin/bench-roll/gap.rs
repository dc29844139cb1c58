//! The gap of a socket at a roll, as a prober sees it: ours on a node full of pods that rest, and the stand-in's, in turn.

use std::path::Path;
use std::time::{Duration, Instant};

use aether_benches::Samples;
use aether_domain::paths;
use aether_harness::plugin::{Attachment, Plugin};
use aether_harness::probe::Prober;
use aether_harness::{Agent, Containerd, Node, Options, Start};
use anyhow::{Context as _, Result, ensure};

use crate::stand_in::StandIn;

/// For how long the prober asks after a roll; and thrice as long before it.
const AROUND: Duration = Duration::from_millis(25);

/// How many pods the node has: what a kubelet runs at the most by default, each with a record that the heir must know.
pub(crate) const PODS: usize = 110;

/// The gaps.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    pub(crate) ours: Samples,
    pub(crate) theirs: Samples,
    pub(crate) idle: Samples,
}

/// Rolls both in turn.
pub(crate) async fn measure(rolls: u32) -> Result<Gaps> {
    let node = Node::start(Options::flannel(Containerd::V2)).await?;
    node.install(&[])?;
    let mut agent = node.spawn_one(&Start::named("agent-0"))?;
    agent.owns().await?;
    populate(&node)?;
    let socket = node.path(paths::CNI_SOCKET_PATH);
    let directory = tempfile::tempdir().context("make a directory for the stand-in")?;
    let mut stand_in = StandIn::start(directory.path())?;
    stand_in.serves()?;
    let mut gaps = Gaps::default();
    for number in 1..=rolls {
        let (new, gap, idle) = ours(&node, &socket, &mut agent, number).await?;
        agent = new;
        gaps.ours.add(gap);
        gaps.idle.add(idle);
        let mut next = StandIn::start(directory.path())?;
        next.stands_by()?;
        let probed = Probed::begin(&StandIn::socket(directory.path())).await?;
        stand_in.terminate()?;
        next.serves()?;
        gaps.theirs.add(probed.end().await?.0);
        stand_in = next;
    }
    Ok(gaps)
}

fn populate(node: &Node) -> Result<()> {
    let plugin = Plugin::of(node)?;
    let netns = Plugin::namespaces(node, 1)?.pop().context("a network namespace")?;
    for number in 0..PODS {
        let name = format!("pod-{number}");
        let to = Attachment { container: name.clone(), pod: name, netns: netns.clone() };
        let output = plugin.call("ADD", &to)?;
        ensure!(output.status.success(), "ADD: {}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

async fn ours(
    node: &Node,
    socket: &Path,
    agent: &mut Agent,
    number: u32,
) -> Result<(Agent, Duration, Duration)> {
    let mut new = node.spawn_one(&Start::named(&format!("agent-{number}")))?;
    new.stands_by().await?;
    let probed = Probed::begin(socket).await?;
    agent.terminate(aether_harness::AGENT_LIMIT)?;
    new.owns().await?;
    let (gap, idle) = probed.end().await?;
    Ok((new, gap, idle))
}

/// A prober at work, and since when it asks while nothing happens, until when that is sure, and when the roll began.
struct Probed {
    prober: Prober,
    quiet: (Instant, Instant),
    told: Instant,
}

impl Probed {
    /// Starts a prober; the roll begins when this returns.
    async fn begin(socket: &Path) -> Result<Self> {
        let prober = Prober::start(socket)?;
        let mut moments = [Instant::now(); 3];
        for moment in &mut moments {
            // pause: the prober asks while nothing happens
            tokio::time::sleep(AROUND).await;
            *moment = Instant::now();
        }
        let [from, to, told] = moments;
        Ok(Self { prober, quiet: (from, to), told })
    }

    /// The longest time without an answer since the roll began, and before it.
    async fn end(self) -> Result<(Duration, Duration)> {
        let owns = Instant::now();
        // pause: the prober asks until the successor has answered
        tokio::time::sleep(AROUND).await;
        let answers = self.prober.stop()?;
        let gap = answers.gap(self.told, owns).context("the prober was not answered")?;
        let idle = answers.gap(self.quiet.0, self.quiet.1).context("the prober was not answered")?;
        Ok((gap, idle))
    }
}
