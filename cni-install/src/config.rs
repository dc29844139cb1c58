//! From the command line to a checked configuration; nothing is touched here.

use std::path::{Path, PathBuf};

use aether_domain::ids::{IdError, InstallId};
use aether_domain::managed;
use aether_domain::paths;

use crate::args::{Action, Args, DEFAULT_INSTALL_ID, Managed};
use crate::entry::{Entry, EntryError, Options};

/// A whole order to the installer.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What to do.
    pub task: Task,
    /// Whether to do it, or only to look.
    pub mode: Mode,
    /// Where things are.
    pub places: Places,
    /// What `--force` allows.
    pub force: Force,
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Install.
    Install(Install),
    /// Uninstall.
    Uninstall(Uninstall),
}

/// An install.
#[derive(Debug, Clone, PartialEq)]
pub struct Install {
    /// Its id.
    pub id: InstallId,
    /// The entry.
    pub entry: Entry,
    /// The binary to copy.
    pub plugin_source: PathBuf,
}

/// An uninstall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uninstall {
    /// The id it was called with, if any.
    pub id: Option<InstallId>,
    /// What becomes of the binary.
    pub binary: Binary,
}

/// What an uninstall does with the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    /// It stays: a runtime with a cached list still runs it for DEL (G9).
    Keep,
    /// It goes.
    Remove,
}

/// Whether to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Act, and wait for a list.
    Wait,
    /// Act, and do not wait.
    NoWait,
    /// Only say what would be done.
    DryRun,
    /// Only say how it stands.
    Check,
}

/// Whether rules that guard against an accident are overruled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// They stand.
    No,
    /// They are overruled.
    Yes,
}

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Lists.
    pub conf_dir: PathBuf,
    /// Plugins.
    pub bin_dir: PathBuf,
    /// Marker and lock.
    pub state_dir: PathBuf,
    /// The file that the runtime is expected to load.
    pub conf_name: Option<String>,
}

impl Places {
    /// The plugin as installed.
    pub fn plugin(&self) -> PathBuf {
        self.bin_dir.join(paths::PLUGIN)
    }

    /// The wanted state.
    pub fn wanted(&self) -> PathBuf {
        self.conf_dir.join(paths::WANTED)
    }

    /// The marker of an uninstall.
    pub fn marker(&self) -> PathBuf {
        self.state_dir.join(paths::UNINSTALLED)
    }

    /// The lock of everybody who edits.
    pub fn lock(&self) -> PathBuf {
        self.state_dir.join(paths::EDIT_LOCK)
    }
}

/// Why the command line makes no order.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A path that others resolve from elsewhere must be absolute.
    #[error("{what} {value:?} is no absolute path: give one that begins with '/'")]
    NotAbsolute {
        /// Which.
        what: &'static str,
        /// The value.
        value: PathBuf,
    },
    /// The entry is JSON, and so is text.
    #[error("{what} {value:?} is not valid UTF-8, which the list has to be: choose another path")]
    NotText {
        /// Which.
        what: &'static str,
        /// The value.
        value: PathBuf,
    },
    /// `--conf-name` names a file in the directory of lists.
    #[error(
        "--conf-name {0:?} is no name of a list: give the file's name alone, with its ending .conflist, .conf or .json"
    )]
    ConfName(String),
    /// A namespace's name follows Kubernetes' rule.
    #[error("{what} {value:?} is no namespace: lower-case letters, digits and '-', at most 63")]
    Namespace {
        /// Which.
        what: &'static str,
        /// The value.
        value: String,
    },
    /// `--plugin-source` has no default where the program's own place is unknown.
    #[error(
        "it is unknown where this program lies, so its neighbour {} cannot be found: give --plugin-source",
        paths::PLUGIN
    )]
    NoPluginSource,
    /// `--remove-binary` belongs to `uninstall`.
    #[error("--remove-binary belongs to `uninstall`: an install needs the binary")]
    RemoveOnInstall,
    /// `--check` asks whether the node is chained.
    #[error("--check asks whether this node is chained, so it does not go with `uninstall`")]
    CheckOnUninstall,
    /// The install's id is none.
    #[error(transparent)]
    InstallId(#[from] IdError),
    /// The entry cannot be written.
    #[error(transparent)]
    Entry(#[from] EntryError),
}

/// Checks the command line. `program` is this program's own path, `exists` says whether a directory is there.
pub fn build(
    args: Args,
    program: Option<&Path>,
    exists: impl Fn(&Path) -> bool,
) -> Result<Config, ConfigError> {
    let profile = args.places.profile;
    let places = Places {
        conf_dir: args.places.cni_conf_dir.unwrap_or_else(|| profile.conf_dir().to_owned()),
        bin_dir: args.places.cni_bin_dir.unwrap_or_else(|| profile.bin_dir(exists)),
        state_dir: absolute("--state-dir", args.places.state_dir)?,
        conf_name: args.places.conf_name.filter(|name| !name.is_empty()).map(conf_name).transpose()?,
    };
    let mode = match (args.how.check, args.how.dry_run, args.how.no_wait) {
        (true, _, _) => Mode::Check,
        (_, true, _) => Mode::DryRun,
        (_, _, true) => Mode::NoWait,
        (false, false, false) => Mode::Wait,
    };
    let task = match args.action {
        Action::Install if args.extent.remove_binary => return Err(ConfigError::RemoveOnInstall),
        Action::Install => Task::Install(Install {
            id: args.install_id.map_or_else(default_id, Ok)?,
            plugin_source: args
                .places
                .plugin_source
                .or_else(|| program.and_then(Path::parent).map(|dir| dir.join(paths::PLUGIN)))
                .ok_or(ConfigError::NoPluginSource)?,
            entry: Entry::new(&Options {
                agent_socket: text("--agent-socket", absolute("--agent-socket", args.entry.agent_socket)?)?,
                state_dir: text("--state-dir", places.state_dir.clone())?,
                add_deadline_seconds: args.entry.add_deadline_seconds,
                ignored_namespaces: namespaces("--ignore-namespace", args.entry.ignore_namespaces)?,
                release_namespace: namespaces(
                    "--release-namespace",
                    args.entry.release_namespace.into_iter().collect(),
                )?
                .pop(),
                managed: match args.entry.managed {
                    Managed::OptOut => managed::Mode::OptOut,
                    Managed::OptIn => managed::Mode::OptIn,
                },
                log_level: args.entry.plugin_log_level.filter(|level| !level.is_empty()),
            })?,
        }),
        Action::Uninstall if mode == Mode::Check => return Err(ConfigError::CheckOnUninstall),
        Action::Uninstall => Task::Uninstall(Uninstall {
            id: args.install_id,
            binary: if args.extent.remove_binary { Binary::Remove } else { Binary::Keep },
        }),
    };
    Ok(Config { task, mode, places, force: if args.extent.force { Force::Yes } else { Force::No } })
}

fn default_id() -> Result<InstallId, ConfigError> {
    Ok(DEFAULT_INSTALL_ID.parse()?)
}

fn absolute(what: &'static str, value: PathBuf) -> Result<PathBuf, ConfigError> {
    if value.is_absolute() { Ok(value) } else { Err(ConfigError::NotAbsolute { what, value }) }
}

fn text(what: &'static str, value: PathBuf) -> Result<String, ConfigError> {
    value.into_os_string().into_string().map_err(|value| ConfigError::NotText { what, value: value.into() })
}

fn conf_name(name: String) -> Result<String, ConfigError> {
    let ending = Path::new(&name)
        .extension()
        .is_some_and(|ending| ending == "conflist" || ending == "conf" || ending == "json");
    if ending && !name.contains('/') { Ok(name) } else { Err(ConfigError::ConfName(name)) }
}

/// Checked, sorted and without doubles, so that the order of flags makes no new entry. Empty ones come from empty
/// variables and mean none.
fn namespaces(what: &'static str, mut names: Vec<String>) -> Result<Vec<String>, ConfigError> {
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    for name in &names {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.len() > 63 || !name.bytes().all(good) {
            return Err(ConfigError::Namespace { what, value: name.clone() });
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
