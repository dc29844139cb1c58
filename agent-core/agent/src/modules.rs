//! The modules of this agent: built, told what changes, enabled when the agent owns the node, ended with it (M02, M08).

mod directory;
mod ends;
mod events;
mod hands;
mod health;
pub(crate) mod told;
mod upstreams;
mod view;

pub(crate) use ends::Ends;
pub(crate) use hands::Hands;
pub(crate) use health::{Readiness, Reassert};
pub(crate) use upstreams::Upstreams;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aether_builtin_modules::{MODULES, Module};
use aether_chain_watch::Observation;
use aether_domain::limits::{MODULES_POLL, MODULES_WAIT};
use aether_domain::managed::KUBE_SYSTEM;
use aether_domain::paths;
use aether_domain::text::error_chain;
use aether_durable::boot;
use aether_module_host::compiler::{ChildCompiler, CompileLimits};
use aether_module_host::world::World;
use aether_module_host::{Builtin, Host, Looked};
use anyhow::Context as _;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::args::Config;
use directory::Directory;

/// How far the operator's modules are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scan {
    /// Not read yet.
    Unread,
    /// Known: a policy that is not compiled yet answers by its failure policy. A directory that cannot be read stands as
    /// one.
    Announced,
    /// Compiled and tried.
    Done,
}

/// All modules.
pub(crate) struct Modules {
    pub(crate) host: Arc<Host>,
    pub(crate) ends: Arc<Ends>,
    pub(crate) directory: PathBuf,
    scan: watch::Sender<Scan>,
}

impl Modules {
    /// Loads the built-in modules: compiled, instantiated, initialised, disabled. Blocks for some milliseconds.
    pub(crate) fn build(config: &Config, ends: Ends) -> anyhow::Result<Arc<Self>> {
        let ends = Arc::new(ends);
        let exempt: BTreeSet<String> =
            [KUBE_SYSTEM].into_iter().map(str::to_owned).chain(config.release_namespace.clone()).collect();
        let host = aether_module_host::Config {
            node: config.node_name.clone(),
            agent_version: crate::run::VERSION.to_owned(),
            directory: Some(config.modules_dir.clone()),
            cache: cache(config)?,
            exempt,
            budget: config.policy_budget,
        };
        let compiler =
            ChildCompiler { program: config.module_compiler.clone(), limits: CompileLimits::default() };
        let builtins = builtins(config.reassert);
        let host = Host::new(host, &builtins, ends.clone(), Arc::new(compiler))?;
        let host = Arc::new(host);
        let directory = config.modules_dir.clone();
        Ok(Arc::new(Self { host, ends, directory, scan: watch::Sender::new(Scan::Unread) }))
    }

    /// Takes in each observation, and tells the modules of those that show them something else, until `stop`: they look again
    /// by themselves every so often, and one whose action fails must not be called by the look that follows it.
    pub(crate) async fn follow(
        self: Arc<Self>,
        mut chain: watch::Receiver<Observation>,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut before = None;
        while let Some(Ok(())) = stop.run_until_cancelled(chain.changed()).await {
            let seen = chain.borrow_and_update().clone();
            let now = view::of(&seen);
            let is_news = before.as_ref() != Some(&now);
            before = Some(now);
            let modules = Arc::clone(&self);
            // A module that is in the middle of a call is waited for.
            let told = tokio::task::spawn_blocking(move || {
                let changed = modules.ends.observe(&seen);
                if is_news {
                    modules.host.notify("aether:conflist", seen.state.name());
                }
                if changed {
                    modules.host.notify("aether:node", "");
                }
                // Behind the modules: a repair waits for nothing.
                modules.ends.remember(&seen, modules.host.ownership());
            });
            told.await.context("telling the modules of a change broke off")?;
        }
        Ok(())
    }

    /// Reads the operator's modules, and again whenever they change, until `stop`; while they cannot be read, whether
    /// they change or not.
    pub(crate) async fn read(self: Arc<Self>, stop: CancellationToken) -> anyhow::Result<()> {
        let mut directory = Directory::new(self.directory.clone());
        let mut said = Vec::new();
        loop {
            let modules = Arc::clone(&self);
            let reading = tokio::task::spawn_blocking(move || {
                directory.arm();
                let seen = modules.host.rescan_announcing(|| modules.reached(Scan::Announced));
                if seen.directory == Looked::Read {
                    modules.reached(Scan::Done);
                }
                (directory, seen)
            });
            // One that compiles goes on by itself; the process's end ends it.
            let Some(read) = stop.run_until_cancelled(reading).await else { return Ok(()) };
            let seen;
            (directory, seen) = read.context("reading the modules broke off")?;
            for problem in seen.problems.iter().filter(|problem| !said.contains(*problem)) {
                tracing::warn!(problem, "not everything in the directory of modules is taken");
            }
            said = seen.problems;
            let longest = match seen.directory {
                Looked::Read => Duration::MAX,
                Looked::Unreadable => MODULES_POLL,
            };
            // The time being up is a reason to read again like any other.
            let changed = tokio::time::timeout(longest, directory.changed());
            if stop.run_until_cancelled(changed).await.is_none() {
                return Ok(());
            }
        }
    }

    fn reached(&self, scan: Scan) {
        self.scan.send_if_modified(|at| {
            let further = *at < scan;
            *at = scan.max(*at);
            further
        });
    }

    /// Waits until every policy of the operator is known: one that is not would let pods through unasked (M05).
    pub(crate) async fn known(&self) {
        // The sender lives in `self`.
        let _ = self.scan.subscribe().wait_for(|scan| *scan >= Scan::Announced).await;
    }

    /// Waits a little for those that are still compiled. Nobody serves the node meanwhile, so that it is not for an heir.
    pub(crate) async fn compiled_soon(&self) {
        let mut scan = self.scan.subscribe();
        if tokio::time::timeout(MODULES_WAIT, scan.wait_for(|scan| *scan == Scan::Done)).await.is_err() {
            tracing::warn!(
                "not every module is read and compiled yet: until then, policies answer by their failure policy"
            );
        }
    }

    /// Waits until every module of the operator is compiled and tried.
    pub(crate) async fn compiled(&self) {
        let mut scan = self.scan.subscribe();
        // The sender lives in `self`.
        let _ = scan.wait_for(|scan| *scan == Scan::Done).await;
    }

    /// Tells every module that the agent stops, and waits until what they stage is done. It goes on when nobody waits for it.
    pub(crate) fn flush(self: &Arc<Self>) -> JoinHandle<()> {
        let modules = Arc::clone(self);
        tokio::task::spawn_blocking(move || modules.host.flush())
    }

    /// The agent owns the node and serves: every module is enabled.
    pub(crate) async fn take_over(self: &Arc<Self>) -> anyhow::Result<()> {
        let modules = Arc::clone(self);
        let enabled = tokio::task::spawn_blocking(move || {
            modules.ends.upstreams.load();
            modules.ends.own();
            // Grows with each takeover of this boot; what modules keep does not outlive it.
            modules.host.take_over(boot::nanos())
        });
        for (module, took) in enabled.await.context("enabling the modules broke off")? {
            tracing::info!(%module, ms = took.as_secs_f64() * 1000.0, "enabled");
        }
        Ok(())
    }
}

/// The folder of compiled modules: on the node, or the agent's own where that cannot be written. Pods must not wait for a cache.
fn cache(config: &Config) -> anyhow::Result<PathBuf> {
    let on_node = config.state_dir.join(paths::MODULES_CACHE);
    let Err(error) = probe(&on_node) else { return Ok(on_node) };
    let own = config.local_dir.join(paths::MODULES_CACHE);
    tracing::warn!(
        instead = %own.display(), error = %error_chain(&error),
        "compiled modules cannot be kept on the node, and are compiled again by the next agent"
    );
    probe(&own).context("compiled modules can be kept nowhere; see --state-dir and --local-dir")?;
    Ok(own)
}

fn probe(directory: &std::path::Path) -> Result<(), aether_module_host::cache::CacheError> {
    aether_module_host::cache::Cache::open(directory).map(drop)
}

/// The built-in modules; without the repair where that is switched off (C09).
fn builtins(reassert: Reassert) -> Vec<Builtin> {
    let wanted = |module: &&Module| reassert == Reassert::On || module.name != World::ConflistReassert.name();
    let builtin = |module: &Module| Builtin {
        manifest: module.manifest,
        name: module.name,
        digest: module.digest,
        artefact: module.artefact,
    };
    MODULES.iter().filter(wanted).map(builtin).collect()
}
