//! The command line, and what becomes of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use aether_domain::{limits, paths};
use aether_module_host::limits::ADD_BUDGET;
use aether_telemetry::logs;
use clap::Parser;

use crate::modules::Reassert;

/// How the process ends, for the text of `--help` and for `main`.
pub(crate) mod exit {
    /// It was told to stop, and did.
    pub(crate) const STOPPED: u8 = 0;
    /// Something failed; the last log line says what.
    pub(crate) const FAILED: u8 = 1;
    /// The node lock's file was replaced (T01).
    pub(crate) const LOCK_REPLACED: u8 = 3;
}

const AFTER_HELP: &str = "Exit codes: 0 told to stop (SIGTERM, SIGINT) and done; 1 failed, the last log line says what; 2 wrong \
arguments; 3 the node lock's file was removed or replaced, and another agent may own the node.";

/// Aether's node agent: owns the node, or waits as a standby until it does.
#[derive(Debug, Parser)]
#[command(name = "aether-agent", version, after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Lock and sockets of the node.
    #[arg(long, env = "AETHER_RUN_DIR", value_name = "DIR", default_value = paths::RUN_DIR)]
    run_dir: PathBuf,
    /// Pod records and tombstones.
    #[arg(long, env = "AETHER_STATE_DIR", value_name = "DIR", default_value = paths::STATE_DIR)]
    state_dir: PathBuf,
    /// The runtime's directory of CNI configurations.
    #[arg(long, env = "AETHER_CNI_CONF_DIR", value_name = "DIR", default_value = paths::CNI_CONF_DIR)]
    cni_conf_dir: PathBuf,
    /// This agent's own directory, shared with no other agent: the admin socket is in it.
    #[arg(long, env = "AETHER_LOCAL_DIR", value_name = "DIR", default_value = paths::LOCAL_DIR)]
    local_dir: PathBuf,
    /// Where to answer GET /metrics while this agent owns the node (it always does on the admin socket).
    #[arg(long, env = "AETHER_METRICS_ADDR", value_name = "ADDRESS:PORT")]
    metrics_addr: Option<SocketAddr>,
    /// The runtime's directory of CNI plugins.
    #[arg(long, env = "AETHER_CNI_BIN_DIR", value_name = "DIR", default_value = paths::CNI_BIN_DIR)]
    cni_bin_dir: PathBuf,
    /// Whether our entry and the plugin are put back where somebody takes them away. With false they are not, and the
    /// list is no cause for not being ready either.
    #[arg(long, env = "AETHER_CNI_CONFLIST_REASSERT", value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = true)]
    cni_conflist_reassert: bool,
    /// The plugin that is put back, where its hash is the wanted one [default: aether-cni beside this program].
    #[arg(long, env = "AETHER_PLUGIN_SOURCE", value_name = "FILE")]
    plugin_source: Option<PathBuf>,
    /// The operator's modules: <name>/{module.toml,module.wasm}, or <name>.toml and <name>.wasm.
    #[arg(long, env = "AETHER_MODULES_DIR", value_name = "DIR", default_value = paths::MODULES_DIR)]
    modules_dir: PathBuf,
    /// The compiler of modules [default: aether-modc beside this program].
    #[arg(long, env = "AETHER_MODULE_COMPILER", value_name = "FILE")]
    module_compiler: Option<PathBuf>,
    /// How many milliseconds all policies together may take at one ADD.
    #[arg(long, env = "AETHER_POLICY_BUDGET_MS", value_name = "MS", default_value_t = policy_budget_ms(),
          value_parser = clap::value_parser!(u64).range(1..=5000))]
    policy_budget_ms: u64,
    /// The namespace of this release: like kube-system, no policy is asked about its pods.
    #[arg(long, env = "AETHER_RELEASE_NAMESPACE", value_name = "NAMESPACE")]
    release_namespace: Option<String>,
    /// This agent's name among those of the node: the pod's [default: agent-<process id>].
    #[arg(long, env = "AETHER_POD_NAME", value_name = "NAME")]
    pod_name: Option<String>,
    /// The Kubernetes node's name, for logs.
    #[arg(long, env = "AETHER_NODE_NAME", value_name = "NAME", default_value = "")]
    node_name: String,
    /// error, warn, info, debug or trace, or directives like `info,aether_pod_store=debug`; `aetherctl log-level` changes it later.
    #[arg(long, env = "AETHER_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    log_level: String,
    /// json or plain.
    #[arg(long, env = "AETHER_LOG_FORMAT", value_name = "FORMAT", default_value = "json")]
    log_format: logs::Format,
    /// How many seconds there are from SIGTERM to the kill: calls in flight are given that long.
    #[arg(long, env = "AETHER_TERMINATION_GRACE", value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    termination_grace: u64,
}

/// What the agent works with. Nothing reads arguments or environment after it is made.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Lock and sockets of the node.
    pub(crate) run_dir: PathBuf,
    /// Pod records and tombstones.
    pub(crate) state_dir: PathBuf,
    /// The runtime's directory of CNI configurations.
    pub(crate) cni_conf_dir: PathBuf,
    /// This agent's own directory.
    pub(crate) local_dir: PathBuf,
    /// The runtime's directory of CNI plugins.
    pub(crate) cni_bin_dir: PathBuf,
    /// Whether list and plugin are put back, and count for readiness (C09).
    pub(crate) reassert: Reassert,
    /// The plugin that is put back (C10).
    pub(crate) plugin_source: PathBuf,
    /// The operator's modules.
    pub(crate) modules_dir: PathBuf,
    /// The compiler of modules.
    pub(crate) module_compiler: PathBuf,
    /// How long all policies together may take at one ADD.
    pub(crate) policy_budget: Duration,
    /// The release's namespace.
    pub(crate) release_namespace: Option<String>,
    /// Where the owner answers `GET /metrics`.
    pub(crate) metrics_addr: Option<SocketAddr>,
    /// This agent's name among those of the node.
    pub(crate) pod_name: String,
    /// The node's name; may be empty.
    pub(crate) node_name: String,
    /// From SIGTERM to the kill (T12).
    pub(crate) termination_grace: Duration,
    /// How long calls in flight are waited for.
    pub(crate) drain: Duration,
}

/// What the logs look like.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    /// JSON or plain.
    pub(crate) format: logs::Format,
    /// The level or directives to start with.
    pub(crate) level: String,
}

impl Args {
    /// Divides the arguments into what the agent works with and what its logs look like.
    pub(crate) fn into_parts(self) -> (Config, Logs) {
        let grace = Duration::from_secs(self.termination_grace);
        let config = Config {
            run_dir: self.run_dir,
            state_dir: self.state_dir,
            cni_conf_dir: self.cni_conf_dir,
            local_dir: self.local_dir,
            cni_bin_dir: self.cni_bin_dir,
            reassert: if self.cni_conflist_reassert { Reassert::On } else { Reassert::Off },
            plugin_source: self.plugin_source.unwrap_or_else(|| neighbour(paths::PLUGIN)),
            modules_dir: self.modules_dir,
            module_compiler: self.module_compiler.unwrap_or_else(|| neighbour(paths::MODULE_COMPILER)),
            policy_budget: Duration::from_millis(self.policy_budget_ms),
            release_namespace: self.release_namespace.filter(|namespace| !namespace.is_empty()),
            metrics_addr: self.metrics_addr,
            pod_name: pod_name(self.pod_name),
            node_name: self.node_name,
            termination_grace: grace,
            drain: drain(grace),
        };
        (config, Logs { format: self.log_format, level: self.log_level })
    }
}

/// The usual budget, as the command line has it.
fn policy_budget_ms() -> u64 {
    u64::try_from(ADD_BUDGET.as_millis()).unwrap_or(u64::MAX)
}

/// The file of this name beside this program; where that cannot be told, the name alone.
fn neighbour(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(name)));
    beside.unwrap_or_else(|| PathBuf::from(name))
}

fn pod_name(given: Option<String>) -> String {
    given.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("agent-{}", std::process::id()))
}

/// How long calls in flight are waited for at the most: the modules' end comes after it, before the kill.
fn drain(grace: Duration) -> Duration {
    grace.saturating_sub(limits::MODULES_END * 2).max(grace / 2)
}

impl Config {
    /// The node lock.
    pub(crate) fn lock(&self) -> PathBuf {
        self.run_dir.join(paths::LOCK)
    }

    /// The probes' socket.
    pub(crate) fn health_socket(&self) -> PathBuf {
        self.local_dir.join(paths::HEALTH_SOCKET)
    }

    /// The admin socket.
    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.local_dir.join(paths::ADMIN_SOCKET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn every_flag_has_an_environment_variable_with_the_product_prefix() {
        Args::command().debug_assert();
        for argument in
            Args::command().get_arguments().filter(|a| !["help", "version"].contains(&a.get_id().as_str()))
        {
            let variable = argument.get_env().and_then(|name| name.to_str()).unwrap_or_default();
            let expected = format!("AETHER_{}", argument.get_id().as_str().to_uppercase());
            assert_eq!(variable, expected);
        }
    }

    #[test]
    fn t07_the_drain_ends_before_the_kill() {
        assert_eq!(drain(Duration::from_secs(30)), Duration::from_secs(28));
        assert_eq!(drain(Duration::from_secs(1)), Duration::from_millis(500));
        let (config, _) = Args::parse_from(["aether-agent", "--termination-grace", "10"]).into_parts();
        assert_eq!(config.drain, Duration::from_secs(8));
    }
}
