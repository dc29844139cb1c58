//! From a configuration to a running agent, and to its end. What happens between is `takeover`'s.

use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aether_chain_watch::Watcher;
use aether_cni_server::Server;
use aether_domain::clock::BootId;
use aether_domain::paths;
use aether_durable::{atomic, boot, socket};
use aether_list_keeper::{Keeper, Places};
use aether_pod_store::{Ports, Store};
use aether_telemetry::Metrics;
use aether_telemetry::logs::Level;
use anyhow::Context as _;
use tokio::net::UnixListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admission::Admission;
use crate::args::Config;
use crate::modules::{Ends, Hands, Modules, Upstreams};
use crate::node::Node;
use crate::ports::{CountCalls, CountLooks, WantedState};
use crate::takeover::{self, End, Shell};
use crate::tasks::Tasks;
use crate::{admin, health};

/// How a run ended. What there is to say about it is in the log by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// The node lock's file was replaced: another agent may own the node (T01).
    LockReplaced,
    /// Something failed, or calls were left behind.
    Failed,
}

/// The run directory's mode, whoever made it (O04): pods' probes pass through it, and list nothing.
pub(crate) const RUN_DIR_MODE: u32 = 0o711;
const LOCAL_DIR_MODE: u32 = 0o700;
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the agent and runs it until it is told to stop, or fails. The end is at once: what must not be lost was written
/// before, and a successor may be waiting for the lock (T07).
pub(crate) async fn run(config: Config, level: Level) -> anyhow::Result<Ended> {
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let (mut shell, mut tasks) = build(config, level)?;
    let began = Instant::now();
    let ended = match shell.live(&mut signals, &mut tasks).await {
        End::Stopped => Ended::Stopped,
        End::LockReplaced => Ended::LockReplaced,
        End::Failed(error) => {
            tracing::error!("ending: {error:#}");
            Ended::Failed
        }
    };
    tracing::info!(ran_s = began.elapsed().as_secs(), "ended");
    // Taken down by the kernel as a whole, not piece by piece: the modules' threads would be waited for.
    std::mem::forget((shell, tasks));
    Ok(ended)
}

/// Everything that owner and standby have alike: nothing of it is on the node but the run directory and the lock's file.
fn build(config: Config, level: Level) -> anyhow::Result<(Shell, Tasks)> {
    let boot =
        boot::id().context("cannot read the kernel's boot id, without which no record can be judged")?;
    tracing::info!(version = VERSION, node = config.node_name, %boot, pid = std::process::id(), ?config, "starting");
    atomic::create_dir_all(&config.run_dir, RUN_DIR_MODE)
        .context("cannot make the run directory; see --run-dir")?;
    atomic::create_dir_all(&config.local_dir, LOCAL_DIR_MODE)
        .context("cannot make this agent's own directory; see --local-dir")?;
    private(&config.local_dir)?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let metrics = Arc::new(Metrics::new(VERSION, started));
    let store = store(&config, boot);
    let keeper = keeper(&config);
    let watch = aether_chain_watch::Config::new(
        config.cni_conf_dir.clone(),
        config.state_dir.clone(),
        config.cni_bin_dir.join(paths::PLUGIN),
    );
    let (watcher, seen) = Watcher::new(watch, CountLooks(Arc::clone(&metrics)), keeper.recall().known());
    let ends = Ends::new(
        seen.clone(),
        watcher.looker(),
        Hands::new(keeper, config.plugin_source.clone()),
        config.reassert,
        Upstreams::new(config.state_dir.join(paths::UPSTREAMS)),
        Arc::clone(&metrics),
    );
    let modules = Modules::build(&config, ends)?;
    let service = Admission::new(store.clone(), Arc::clone(&modules.host));
    let calls = Arc::new(CountCalls(Arc::clone(&metrics)));
    let server = Server::new(Arc::new(service), calls, VERSION);
    let (standing, followed) = takeover::machine(&config, boot::nanos());
    let node = Arc::new(Node::new(store, seen.clone(), metrics, level, server.handle(), modules, followed));
    let admin = listen(&config.admin_socket()).context("cannot open the admin socket; see --local-dir")?;
    let probes =
        listen(&config.health_socket()).context("cannot open the probes' socket; see --local-dir")?;
    let admin_socket = config.admin_socket();
    let (shell, pings) = Shell::new(config, Arc::clone(&node), server, standing);
    let mut tasks = Tasks::default();
    tasks.start("chain watch", |stop| async move {
        watcher.run(stop).await;
        Ok(())
    });
    let modules = Arc::clone(&node.modules);
    tasks.start("modules and the chain", |stop| modules.follow(seen, stop));
    let modules = Arc::clone(&node.modules);
    tasks.start("modules' directory", |stop| modules.read(stop));
    let asked = Arc::clone(&node);
    tasks.start("probes' socket", |stop| health::serve(probes, asked, pings, stop));
    tasks.start("admin socket", |stop| admin::serve(admin, node, stop));
    tracing::info!(socket = %admin_socket.display(), "the admin socket is answered");
    Ok((shell, tasks))
}

/// Whoever owns the directory of the admin socket and the probes' could put others in their place. One that a kubelet has made
/// (an `emptyDir`) is open to all, and is closed.
fn private(directory: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let shown = directory.display();
    let meta = directory.metadata().with_context(|| format!("cannot look at {shown}; see --local-dir"))?;
    let uid = rustix::process::geteuid().as_raw();
    anyhow::ensure!(
        meta.uid() == uid,
        "{shown} belongs to uid {}, and this agent runs as uid {uid}: remove it, or give another --local-dir",
        meta.uid()
    );
    if meta.mode() & 0o7777 != LOCAL_DIR_MODE {
        rustix::fs::chmod(directory, rustix::fs::Mode::from_raw_mode(LOCAL_DIR_MODE))
            .with_context(|| format!("cannot close {shown} to others; see --local-dir"))?;
    }
    Ok(())
}

fn keeper(config: &Config) -> Keeper {
    Keeper::new(Places {
        conf_dir: config.cni_conf_dir.clone(),
        bin_dir: config.cni_bin_dir.clone(),
        state_dir: config.state_dir.clone(),
    })
}

fn store(config: &Config, boot: BootId) -> Store {
    let ports =
        Ports { observer: Arc::new(()), first_install: Arc::new(WantedState(config.cni_conf_dir.clone())) };
    Store::new(aether_pod_store::Config { state_dir: config.state_dir.clone(), boot }, ports)
}

fn listen(path: &Path) -> anyhow::Result<UnixListener> {
    Ok(UnixListener::from_std(socket::bind(path)?.listener)?)
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.term.recv() => Told::Terminate,
            _ = self.int.recv() => Told::Interrupt,
        }
    }
}

/// By which signal an agent is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// SIGTERM: a kubelet's, or a supervisor's.
    Terminate,
    /// SIGINT: a person's.
    Interrupt,
}

impl Told {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }
}
