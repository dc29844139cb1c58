//! From a configuration to a running agent, and to its end. The order is the contract: T01, T02, T06, T07.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aether_chain_watch::Watcher;
use aether_cni_server::Server;
use aether_domain::clock::BootId;
use aether_domain::{limits, paths};
use aether_durable::lock::Lock;
use aether_durable::{atomic, boot};
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
use crate::ports::{CountCalls, CountLooks, Namespaces, WantedState};
use crate::tasks::Tasks;
use crate::{admin, foreign, lock, metrics_http};

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

const RUN_DIR_MODE: u32 = 0o711;
const LOCAL_DIR_MODE: u32 = 0o700;
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How long tasks that only answer questions are waited for. Nothing is lost when it passes.
pub(crate) const TASKS_END: Duration = Duration::from_secs(1);

/// Builds the agent and runs it until it is told to stop, or fails.
pub(crate) async fn run(config: Config, level: Level) -> anyhow::Result<Ended> {
    let mut agent = Agent::build(config, level)?;
    let end = agent.live().await;
    Ok(agent.end(end).await)
}

struct Agent {
    config: Config,
    node: Arc<Node>,
    server: Option<Server<Admission<Store>>>,
    tasks: Tasks,
    signals: Signals,
}

/// What ends a life.
enum End {
    Signal(&'static str),
    LockReplaced,
    Failed(anyhow::Error),
}

impl Agent {
    /// Everything that owner and standby have alike: nothing of it is on the node but the run directory and the lock's file.
    fn build(config: Config, level: Level) -> anyhow::Result<Self> {
        let signals = Signals::new().context("cannot listen for signals")?;
        let boot =
            boot::id().context("cannot read the kernel's boot id, without which no record can be judged")?;
        tracing::info!(version = VERSION, node = config.node_name, %boot, pid = std::process::id(), ?config, "starting");
        atomic::create_dir_all(&config.run_dir, RUN_DIR_MODE)
            .context("cannot make the run directory; see --run-dir")?;
        atomic::create_dir_all(&config.local_dir, LOCAL_DIR_MODE)
            .context("cannot make this agent's own directory; see --local-dir")?;
        let started = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let metrics = Arc::new(Metrics::new(VERSION, started));
        let store = store(&config, boot);
        let keeper = keeper(&config);
        let watch = aether_chain_watch::Config::new(
            config.cni_conf_dir.clone(),
            config.state_dir.clone(),
            config.cni_bin_dir.join(paths::PLUGIN),
        );
        let (watcher, chain) = Watcher::new(watch, CountLooks(Arc::clone(&metrics)), keeper.recall().known());
        let ends = Ends::new(
            chain.clone(),
            watcher.looker(),
            Hands::new(keeper, config.plugin_source.clone()),
            config.reassert,
            Upstreams::new(config.state_dir.join(paths::UPSTREAMS)),
            Arc::clone(&metrics),
        );
        let modules = Modules::build(&config, ends)?;
        let admission = Admission::new(store.clone(), Arc::clone(&modules.host));
        let calls = Arc::new(CountCalls(Arc::clone(&metrics)));
        let server = Server::new(Arc::new(admission), calls, VERSION);
        let node = Arc::new(Node::new(store, chain.clone(), metrics, level, server.handle(), modules));
        let listener =
            listen(&config.admin_socket()).context("cannot open the admin socket; see --local-dir")?;
        let mut tasks = Tasks::default();
        tasks.start("chain watch", |stop| async move {
            watcher.run(stop).await;
            Ok(())
        });
        let modules = Arc::clone(&node.modules);
        tasks.start("modules and the chain", |stop| modules.follow(chain, stop));
        let modules = Arc::clone(&node.modules);
        tasks.start("modules' directory", |stop| modules.read(stop));
        let asked = Arc::clone(&node);
        tasks.start("admin socket", |stop| admin::serve(listener, asked, stop));
        tracing::info!(socket = %config.admin_socket().display(), "the admin socket is answered");
        Ok(Self { config, node, server: Some(server), tasks, signals })
    }

    async fn live(&mut self) -> End {
        let lock = match self.own().await {
            Ok(lock) => lock,
            Err(end) => return end,
        };
        match until(&mut self.signals, &mut self.tasks, lock::replaced(lock)).await {
            Ok(()) => End::LockReplaced,
            Err(end) => end,
        }
    }

    /// From nothing to an owner that serves.
    async fn own(&mut self) -> Result<&'static Lock, End> {
        let path = self.config.lock();
        let lock = until(&mut self.signals, &mut self.tasks, lock::get(path.clone()))
            .await?
            .context("cannot have the node lock; see --run-dir")
            .map_err(End::Failed)?;
        // Held for life: it is let go by the end of the process, after everything else (T01, T07).
        let lock: &'static Lock = Box::leak(Box::new(lock));
        tracing::info!(lock = %path.display(), "this agent holds the node lock");
        let socket = self.config.cni_socket();
        until(&mut self.signals, &mut self.tasks, foreign::wait_until_nobody_answers(&socket)).await?;
        let node = Arc::clone(&self.node);
        let mut steps = Steps::begin();
        let enabled = until(&mut self.signals, &mut self.tasks, node.store.enable())
            .await?
            .context("cannot take over the pods' records; see --state-dir")
            .map_err(End::Failed)?;
        steps.done(format_args!(
            "read {} record(s) and applied {} tombstone(s)",
            node.store.records().len(),
            enabled.tombstones.applied
        ));
        until(&mut self.signals, &mut self.tasks, node.modules.known()).await?;
        steps.done(format_args!("the operator's modules are known"));
        self.serve(&socket).map_err(End::Failed)?;
        node.became_owner();
        steps.done(format_args!("serving on {}", socket.display()));
        until(&mut self.signals, &mut self.tasks, node.modules.take_over()).await?.map_err(End::Failed)?;
        steps.done(format_args!("enabled the modules"));
        self.look_after();
        Ok(lock)
    }

    fn serve(&mut self, socket: &Path) -> anyhow::Result<()> {
        open_to_all(&self.config.run_dir);
        let listener = listen(socket).context("cannot open the CNI socket; see --run-dir")?;
        let server = self.server.take().context("the CNI service was started already")?;
        self.tasks.start("CNI service", |stop| async move {
            let handle = server.handle();
            let serving = server.serve(listener);
            tokio::pin!(serving);
            tokio::select! {
                ended = &mut serving => return Ok(ended?),
                () = stop.cancelled() => handle.drain(),
            }
            Ok(serving.await?)
        });
        Ok(())
    }

    /// What the owner does beside serving: tombstones, sweeps, metrics for scrapers.
    fn look_after(&mut self) {
        let node = Arc::clone(&self.node);
        self.tasks.start("tombstones and sweep", |stop| async move {
            stop.run_until_cancelled(node.store.keep(Arc::new(Namespaces))).await;
            Ok(())
        });
        if let Some(address) = self.config.metrics_addr {
            let node = Arc::clone(&self.node);
            self.tasks.start("metrics address", move |stop| metrics_http::serve(address, node, stop));
        }
    }

    /// Drains, ends every task, and says how it ended (T07). The socket's path stays: no agent unlinks one (T08).
    async fn end(mut self, end: End) -> Ended {
        let ended = match end {
            End::Signal(name) => {
                tracing::info!(signal = name, "told to stop");
                Ended::Stopped
            }
            End::LockReplaced => {
                tracing::error!(
                    lock = %self.config.lock().display(),
                    "the node lock's file was removed or replaced by hand, and another agent may own the node: draining and ending"
                );
                Ended::LockReplaced
            }
            End::Failed(error) => {
                tracing::error!("ending: {error:#}");
                Ended::Failed
            }
        };
        let began = Instant::now();
        let drained = if self.server.is_none() { self.drain().await } else { Ok(()) };
        if let Err(error) = &drained {
            tracing::error!("{error:#}");
        }
        self.end_modules().await;
        if tokio::time::timeout(TASKS_END, self.tasks.end()).await.is_err() {
            tracing::warn!(tasks = self.tasks.running().join(", "), "tasks did not end in time and are left");
        }
        tracing::info!(ms = began.elapsed().as_secs_f64() * 1000.0, "ended");
        if drained.is_ok() { ended } else { Ended::Failed }
    }

    /// The modules' last actions come after the last call, and before the tasks on which they lean.
    async fn end_modules(&self) {
        let modules = Arc::clone(&self.node.modules);
        let ending = tokio::task::spawn_blocking(move || modules.end());
        if tokio::time::timeout(limits::MODULES_END, ending).await.is_err() {
            tracing::warn!("modules did not end in time and are left");
        }
    }

    async fn drain(&mut self) -> anyhow::Result<()> {
        let handle = self.node.cni.clone();
        handle.drain();
        self.node.left_off();
        let limit = self.config.drain;
        tokio::select! {
            () = handle.drained() => Ok(()),
            () = tokio::time::sleep(limit) => {
                anyhow::bail!("CNI calls were still in flight {limit:?} after the drain began, and are left; their callers try again")
            }
            name = self.signals.next() => anyhow::bail!("told to stop by {name} again while draining: left at once"),
        }
    }
}

/// Runs `what` until it is done, a signal comes or a task ends that should not.
async fn until<T>(signals: &mut Signals, tasks: &mut Tasks, what: impl Future<Output = T>) -> Result<T, End> {
    tokio::select! {
        biased;
        name = signals.next() => Err(End::Signal(name)),
        error = tasks.unexpected_end() => Err(End::Failed(error)),
        done = what => Ok(done),
    }
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

fn listen(socket: &Path) -> anyhow::Result<UnixListener> {
    Ok(UnixListener::from_std(aether_cni_server::bind(socket)?)?)
}

/// The run directory's mode, whoever made it (O04): pods' probes pass through it, and list nothing.
fn open_to_all(run_dir: &Path) {
    if let Err(errno) = rustix::fs::chmod(run_dir, rustix::fs::Mode::from_raw_mode(RUN_DIR_MODE)) {
        tracing::warn!(directory = %run_dir.display(), "cannot set the run directory's mode to {RUN_DIR_MODE:04o}: {errno}");
    }
}

/// SIGTERM and SIGINT.
struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

/// Logs each step of becoming the owner with what it took (T05).
struct Steps(Instant);

impl Steps {
    fn begin() -> Self {
        Self(Instant::now())
    }

    fn done(&mut self, what: fmt::Arguments<'_>) {
        tracing::info!(ms = self.0.elapsed().as_secs_f64() * 1000.0, "{what}");
        self.0 = Instant::now();
    }
}
