//! Agents on a node: one or several, each with a directory, a log and a program of its own.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aether_api::admin::PodsRequest;
use aether_api::admin::admin_client::AdminClient;
use aether_domain::paths;
use anyhow::{Context as _, bail, ensure};
use rustix::process::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::node::Node;
use crate::process::{Behind, Process};
use crate::{socket, tools, wait};

/// An agent that knows no hand-over: one of the past, built for tests.
pub const PAST_AGENT: &str = "aether-agent-without-handover";
/// The agent's program.
pub const AGENT: &str = "aether-agent";
/// The name of the only agent of a node; its directory is the usual one.
const ONLY: &str = "aether";
/// The flag for an agent's own directory.
const LOCAL_DIR: &str = "--local-dir";
/// Within which an agent must serve or stand by; a few tenths of a second are usual.
pub const AGENT_LIMIT: Duration = Duration::from_secs(60);

/// How an agent is started.
#[derive(Debug, Clone)]
pub struct Start {
    name: String,
    program: Option<PathBuf>,
    arguments: Vec<String>,
    inject: Vec<String>,
}

impl Start {
    /// An agent whose own directory is `/tmp/NAME`, with the program under test.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), program: None, arguments: Vec::new(), inject: Vec::new() }
    }

    /// The name that it says it has.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An agent with the name and the arguments that another runs with.
    pub fn like(name: &str, other: &Agent) -> anyhow::Result<Self> {
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", other.pid()))
            .with_context(|| format!("{} has ended", other.name()))?;
        let mut words = line.split_terminator('\0').skip(1);
        let mut arguments = Vec::new();
        while let Some(word) = words.next() {
            if word == LOCAL_DIR {
                words.next();
            } else {
                arguments.push(word.to_owned());
            }
        }
        Ok(Self { arguments, ..Self::named(name) })
    }

    /// Another program in the agent's place: an older build.
    #[must_use]
    pub fn program(self, program: PathBuf) -> Self {
        Self { program: Some(program), ..self }
    }

    /// More arguments.
    #[must_use]
    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// Under strace, which does these things to it: `inject=flock:signal=KILL:when=1`.
    #[must_use]
    pub fn traced(mut self, inject: &[&str]) -> Self {
        self.inject.extend(inject.iter().flat_map(|&what| ["-e".to_owned(), what.to_owned()]));
        self
    }
}

/// A running agent. Dropping it kills it, unless another process started it.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    /// The directory that is its alone, as the node names it.
    local: String,
    /// The same as this process can open it.
    path: PathBuf,
}

impl Deref for Agent {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Agent {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Agent {
    /// Lets it live on after this process.
    pub fn leave(self) {
        self.process.leave();
    }

    /// Its admin socket, as `aetherctl` inside the node takes it.
    pub fn admin_socket(&self) -> String {
        format!("{}/{}", self.local, paths::ADMIN_SOCKET)
    }

    /// "owner" or "standby", as it says itself.
    pub async fn role(&self) -> anyhow::Result<String> {
        let mut admin = AdminClient::new(socket::channel(&self.path.join(paths::ADMIN_SOCKET)));
        let answer = admin.pods(PodsRequest {}).await.context("the admin socket")?;
        Ok(answer.into_inner().role)
    }

    /// What its probe would be told: ready, or an error that names the gates that are missing.
    pub async fn readiness(&self) -> anyhow::Result<()> {
        let health = self.path.join(paths::HEALTH_SOCKET);
        let answer = ask_http(&health, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        Ok(())
    }

    /// Waits until it is ready: as owner, or as a complete standby.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        self.until("ready", async |agent| agent.readiness().await).await
    }

    /// Waits until it stands by.
    pub async fn stands_by(&mut self) -> anyhow::Result<()> {
        self.ready().await?;
        self.until("a standby", async |agent| {
            let role = agent.role().await?;
            ensure!(role == "standby", "it is {role}");
            Ok(())
        })
        .await
    }

    /// Waits until it owns the node.
    pub async fn owns(&mut self) -> anyhow::Result<()> {
        self.until("the owner", async |agent| {
            let role = agent.role().await?;
            ensure!(role == "owner", "it is {role}");
            Ok(())
        })
        .await
    }

    /// Lets the kernel kill it for want of memory, the next time it asks for some: it is moved into a group of `node` whose
    /// limit is a page. Whoever asks it something makes it ask.
    pub fn starve(&self, node: &Node) -> anyhow::Result<()> {
        let group = node.memory_group(self.name())?;
        std::fs::write(group.join("cgroup.procs"), self.pid().to_string())
            .with_context(|| format!("cannot move {} to {}", self.name(), group.display()))
    }

    /// Waits for a line of its log that contains `part`.
    pub async fn logged(&mut self, part: &str) -> anyhow::Result<String> {
        self.until(&format!("heard saying {part:?}"), async |agent| {
            let log = agent.log();
            let line = log.lines().find(|line| line.contains(part));
            Ok(line.with_context(|| format!("its log: {log}"))?.to_owned())
        })
        .await
    }

    /// Looks until `look` succeeds; that the agent ends meanwhile is an error at once.
    async fn until<T>(
        &mut self,
        what: &str,
        look: impl AsyncFn(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let name = self.name().to_owned();
        let looked =
            wait::until(&format!("{name} being {what}"), AGENT_LIMIT, async || match look(self).await {
                Ok(value) => Ok(Some(value)),
                Err(error) if self.process.is_running() => Err(error),
                Err(_) => Ok(None),
            })
            .await;
        match looked {
            Ok(Some(value)) => Ok(value),
            Ok(None) => bail!("{name} ended before it was {what}: {}", self.log()),
            Err(error) => Err(error.context(self.log())),
        }
    }
}

impl Node {
    /// Starts an agent and does not wait.
    pub fn spawn_agent(&self, arguments: &[&str]) -> anyhow::Result<Agent> {
        self.spawn_one(&Start::named(ONLY).with(arguments))
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
        agent
            .until("serving the plugin", async |_| {
                UnixStream::connect(&socket).await.with_context(|| format!("{}", socket.display()))?;
                Ok(())
            })
            .await
    }

    /// Starts one of several agents and does not wait.
    pub fn spawn_one(&self, start: &Start) -> anyhow::Result<Agent> {
        self.bring_programs()?;
        let program = match &start.program {
            None => format!("{}/{AGENT}", crate::node::BIN),
            Some(program) => self.bring_agent(&start.name, program)?,
        };
        let mut given = start.arguments.iter().skip_while(|&argument| argument != LOCAL_DIR);
        let local = given.nth(1).cloned().unwrap_or_else(|| format!("/tmp/{}", start.name));
        // By its environment: one of the past does not know the flag.
        let known_as = format!("AETHER_POD_NAME={}", start.name);
        let mut line = Vec::new();
        let behind = if start.inject.is_empty() {
            line.extend(["env", &known_as]);
            Behind::Program
        } else {
            line.extend(["strace", "-f", "-qq", "-o", "/dev/null", "-E", &known_as]);
            line.extend(start.inject.iter().map(String::as_str));
            Behind::Strace
        };
        line.push(&program);
        line.extend(start.arguments.iter().map(String::as_str));
        if !start.arguments.iter().any(|argument| argument == LOCAL_DIR) {
            line.extend([LOCAL_DIR, &local]);
        }
        let process = self.spawn_behind(&format!("agent-{}", start.name), behind, &line)?;
        Ok(Agent { process, path: self.path(&local), local })
    }

    /// Puts another agent's program into a directory of its own, beside the plugin and the compiler that it looks for there.
    fn bring_agent(&self, name: &str, program: &Path) -> anyhow::Result<String> {
        let directory = self.dir().join("bin").join(name);
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
        for beside in [paths::PLUGIN, paths::MODULE_COMPILER] {
            tools::copy(&tools::program_under_test(beside)?, &directory.join(beside))?;
        }
        tools::copy(program, &directory.join(AGENT))?;
        Ok(format!("{}/{name}/{AGENT}", crate::node::BIN))
    }

    /// The agents that another process started on this node and left.
    pub fn agents(&self) -> anyhow::Result<Vec<Agent>> {
        let mut agents = Vec::new();
        for pid in self.pids()? {
            let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
            // One that ends while we look is none.
            let (Ok(comm), Ok(line), Ok(log)) = (
                std::fs::read_to_string(proc.join("comm")),
                std::fs::read_to_string(proc.join("cmdline")),
                std::fs::read_link(proc.join("fd/2")),
            ) else {
                continue;
            };
            if comm.trim() != AGENT {
                continue;
            }
            let mut words = line.split('\0').skip_while(|&word| word != LOCAL_DIR);
            let local = words.nth(1).unwrap_or(paths::LOCAL_DIR).to_owned();
            let name = local.rsplit('/').next().unwrap_or(ONLY);
            agents.push(Agent { process: Process::adopt(name, pid, log)?, path: self.path(&local), local });
        }
        Ok(agents)
    }

    /// Of the agents that another process started and left, the one that owns the node.
    pub async fn owner(&self) -> anyhow::Result<Agent> {
        for agent in self.agents()? {
            if agent.role().await.is_ok_and(|role| role == "owner") {
                return Ok(agent);
            }
        }
        bail!("no agent owns the node in {}", self.dir().display())
    }

    /// The pids, as the machine sees them, of everything in the node.
    fn pids(&self) -> anyhow::Result<Vec<Pid>> {
        let namespace = |pid: i32| std::fs::read_link(format!("/proc/{pid}/ns/pid"));
        let ours = namespace(self.pid()).context("cannot look at the node's pid 1")?;
        let all = std::fs::read_dir("/proc").context("cannot read /proc")?.flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let inside = pids.filter(|&pid| namespace(pid).is_ok_and(|of| of == ours));
        Ok(inside.filter_map(Pid::from_raw).collect())
    }
}

/// One GET on a unix socket; the whole answer.
async fn ask_http(socket: &Path, path: &str) -> anyhow::Result<String> {
    let mut stream = UnixStream::connect(socket).await.with_context(|| format!("{}", socket.display()))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
