//! The command line, and the environment behind it: an init container sets variables, a person types flags.

use std::path::PathBuf;

use aether_domain::ids::InstallId;
use aether_domain::{limits, paths};
use clap::{Args as Group, Parser, ValueEnum};

use crate::profile::Profile;

/// The id of an install that names none.
pub const DEFAULT_INSTALL_ID: &str = "manual";

/// What `--help` says of the exit codes; the numbers are those of [`crate::exit::Exit`].
const AFTER_HELP: &str = "\
Exit codes:
  0  done; with --check: chained; with --dry-run: it would be done
  1  an error: something could not be read or written; the old list stands
  2  the command line is wrong
  3  not chained (--check), or no list to take yet (--no-wait, --dry-run)
  4  refused: waiting or trying again does not help; the message says what does

Log lines go to standard error; the diff of --dry-run and the answer of --check to standard output.";

/// Installs Aether's CNI plugin on a node: the binary, the wanted entry, and the entry in the list that the
/// container runtime loads. Removes them with `uninstall`.
#[derive(Debug, Parser)]
#[command(name = "aether-cni-install", version, after_help = AFTER_HELP)]
pub struct Args {
    /// What to do.
    #[arg(value_enum, default_value_t = Action::Install)]
    pub action: Action,
    /// How to do it.
    #[command(flatten)]
    pub how: How,
    /// How far to go.
    #[command(flatten)]
    pub extent: Extent,
    /// Where things are.
    #[command(flatten)]
    pub places: Places,
    /// What the entry says.
    #[command(flatten)]
    pub entry: Entry,
    /// Which install this is: the chart's `release/revision`, or any word. After an uninstall, `install` of that or
    /// an earlier id is refused; of `release/revision` ids, one of the same release with a lower or equal revision is
    /// earlier, any other id only when it is equal. [default: manual]
    #[arg(long, env = "AETHER_INSTALL_ID")]
    pub install_id: Option<InstallId>,
}

/// The two things that the installer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Install, or upgrade.
    Install,
    /// Take our entry out of every list, and the wanted entry away.
    Uninstall,
}

/// How to do it.
#[derive(Debug, Group)]
pub struct How {
    /// Change nothing; exit 0 only if the node is chained, and say on standard output how it stands.
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,
    /// Change nothing; print the chosen file, the reason, and a unified diff of the list.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not wait for a list that the runtime would load: exit 3 and say what is missing.
    #[arg(long, env = "AETHER_NO_WAIT")]
    pub no_wait: bool,
}

/// How far to go.
#[derive(Debug, Group)]
pub struct Extent {
    /// Install although this install was removed before, or although a newer release wrote the wanted entry; remove
    /// a binary that is not the one installed.
    #[arg(long, env = "AETHER_FORCE")]
    pub force: bool,
    /// With `uninstall`: remove the plugin's binary too. Runtimes that keep a pod's list (CRI-O, podman) can then not
    /// delete pods that were added with it.
    #[arg(long, env = "AETHER_REMOVE_BINARY")]
    pub remove_binary: bool,
}

/// Where things are.
#[derive(Debug, Group)]
pub struct Places {
    /// The platform's directories; the flags below override them.
    #[arg(long, value_enum, env = "AETHER_PROFILE", default_value_t = Profile::Default)]
    pub profile: Profile,
    /// The directory of CNI lists.
    #[arg(long, env = "AETHER_CNI_CONF_DIR", value_name = "DIR")]
    pub cni_conf_dir: Option<PathBuf>,
    /// The directory of CNI plugins.
    #[arg(long, env = "AETHER_CNI_BIN_DIR", value_name = "DIR")]
    pub cni_bin_dir: Option<PathBuf>,
    /// The node's state directory; the entry names it too, so it is the same path inside and outside a container.
    #[arg(long, env = "AETHER_STATE_DIR", value_name = "DIR", default_value = paths::STATE_DIR)]
    pub state_dir: PathBuf,
    /// The plugin's binary to install. [default: the file `aether-cni` beside this program]
    #[arg(long, env = "AETHER_PLUGIN_SOURCE", value_name = "FILE")]
    pub plugin_source: Option<PathBuf>,
    /// The file that the runtime is expected to load, such as `10-flannel.conflist`. No other is ever edited.
    #[arg(long, env = "AETHER_CONF_NAME", value_name = "NAME")]
    pub conf_name: Option<String>,
}

/// What the entry says.
#[derive(Debug, Group)]
pub struct Entry {
    /// The agent's CNI socket.
    #[arg(long, env = "AETHER_AGENT_SOCKET", value_name = "PATH", default_value = paths::CNI_SOCKET_PATH)]
    pub agent_socket: PathBuf,
    /// A namespace whose pods are left alone; may be repeated. `kube-system` always is.
    #[arg(
        long = "ignore-namespace",
        env = "AETHER_IGNORE_NAMESPACES",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub ignore_namespaces: Vec<String>,
    /// The namespace that Aether itself runs in; its pods are left alone.
    #[arg(long, env = "AETHER_RELEASE_NAMESPACE", value_name = "NAME")]
    pub release_namespace: Option<String>,
    /// Which pods are managed when their annotation says nothing.
    #[arg(long, value_enum, env = "AETHER_MANAGED", default_value_t = Managed::OptOut)]
    pub managed: Managed,
    /// How long an ADD waits for the agent.
    #[arg(long, env = "AETHER_ADD_DEADLINE_SECONDS", value_name = "SECONDS", default_value_t = limits::ADD_DEADLINE.as_secs(),
          value_parser = clap::value_parser!(u64).range(1..=limits::ADD_DEADLINE_MAX.as_secs()))]
    pub add_deadline_seconds: u64,
    /// What the plugin says in the runtime's log: a line for each call (`info`), or only for those that did not do what they
    /// should. [default: info]
    #[arg(long, env = "AETHER_PLUGIN_LOG_LEVEL", value_name = "info|error", value_parser = log_level)]
    pub plugin_log_level: Option<String>,
}

/// An empty variable is none: a chart sets them all.
fn log_level(text: &str) -> Result<String, String> {
    match text {
        "" | "info" | "warn" | "error" | "off" => Ok(text.to_owned()),
        _ => Err("the plugin knows info and error".to_owned()),
    }
}

/// `managed` of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Managed {
    /// Every pod but those whose annotation `aether.io/managed` says "false".
    OptOut,
    /// Only pods whose annotation `aether.io/managed` says "true".
    OptIn,
}
