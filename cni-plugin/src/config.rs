//! Standard input: the network's configuration with our entry in it.
//!
//! The top level is read as a map of raw values, so that `prevResult` can leave as it came, a key that occurs twice
//! means its last value, as it does for Go, and nothing that we do not know can be refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aether_domain::ids::NetworkName;
use aether_domain::managed::{KUBE_SYSTEM, Mode};
use aether_domain::{limits, paths};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::{Failure, code};
use crate::version;

/// The longest path of a socket, in bytes (`sockaddr_un` without its final NUL).
const SOCKET_PATH_MAX: usize = 107;

/// What was read of standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Input {
    /// The bytes, up to the bound.
    pub bytes: Vec<u8>,
    /// Why it is not the whole.
    pub problem: Option<Incomplete>,
}

/// Why standard input was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incomplete {
    /// It holds more than [`limits::STDIN_MAX`].
    TooLarge,
    /// Its end did not come in time.
    TimedOut(Duration),
    /// Reading failed.
    Failed(String),
}

/// A key of the configuration that we cannot use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} {rule}")]
pub struct Problem {
    /// The key.
    pub key: &'static str,
    /// What it must be.
    pub rule: &'static str,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::new(
            code::INVALID_CONFIG,
            "invalid network configuration",
            format!(
                "{problem}: correct the list under {}, or run aether-cni-install again",
                paths::CNI_CONF_DIR
            ),
        )
    }
}

/// The configuration's top level.
#[derive(Debug, Default)]
pub struct Document<'a> {
    keys: BTreeMap<String, &'a RawValue>,
}

impl<'a> Document<'a> {
    /// Reads all of `input`.
    pub fn parse(input: &'a Input) -> Result<Self, Failure> {
        let decode =
            |details: String| Failure::new(code::DECODE, "cannot read the network configuration", details);
        match &input.problem {
            Some(Incomplete::TooLarge) => {
                return Err(decode(format!("standard input holds more than {} bytes", limits::STDIN_MAX)));
            }
            Some(Incomplete::TimedOut(wait)) => {
                let so_far = input.bytes.len();
                return Err(decode(format!(
                    "standard input did not end within {} ms ({so_far} bytes came): the caller must close it",
                    wait.as_millis()
                )));
            }
            Some(Incomplete::Failed(error)) => {
                let details = format!("standard input: {error}");
                return Err(Failure::new(code::IO, "cannot read the network configuration", details));
            }
            None => {}
        }
        if input.bytes.iter().all(u8::is_ascii_whitespace) {
            return Err(decode(
                "standard input is empty: the runtime must give the network configuration there".into(),
            ));
        }
        Self::of(&input.bytes).map_err(|error| decode(format!("standard input is no JSON object: {error}")))
    }

    /// Reads what came, whole or not, and makes do with nothing (K07).
    pub fn parse_leniently(input: &'a Input) -> Self {
        Self::of(&input.bytes).unwrap_or_default()
    }

    fn of(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes).map(|keys| Self { keys })
    }

    /// The value of `key` as it stands; `None` for none and for `null`.
    pub fn raw(&self, key: &str) -> Option<&'a RawValue> {
        self.keys.get(key).copied().filter(|raw| raw.get() != "null")
    }

    /// The value of `key`; `rule` says what it must be.
    pub fn get<T: Deserialize<'a>>(
        &self,
        key: &'static str,
        rule: &'static str,
    ) -> Result<Option<T>, Problem> {
        let Some(raw) = self.raw(key) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|_| Problem { key, rule })
    }

    /// The version that the list declares, resolved (K01).
    pub fn version(&self) -> Result<&'static str, Failure> {
        let declared: Option<String> = self.get("cniVersion", "must be a string")?;
        version::resolve(declared.as_deref())
            .ok_or_else(|| version::incompatible(declared.as_deref().unwrap_or_default()))
    }

    /// The network's name (K08).
    pub fn network(&self) -> Result<Option<NetworkName>, Problem> {
        const RULE: &str = "must be a string of at most 4096 bytes";
        let Some(name) = self.get::<String>("name", RULE)? else { return Ok(None) };
        if name.is_empty() {
            return Ok(None);
        }
        name.parse().map(Some).map_err(|_| Problem { key: "name", rule: RULE })
    }
}

/// Our entry's own keys (I09).
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The agent's socket.
    pub socket: PathBuf,
    /// Where tombstones and the marker are.
    pub state_dir: PathBuf,
    /// How long an ADD waits for the agent (K04).
    pub add_deadline: Duration,
    /// Namespaces that are never managed (K06).
    pub ignored: Vec<String>,
    /// Which pods are managed when nothing is said.
    pub mode: Mode,
    /// What is logged.
    pub log: LogLevel,
}

/// What is logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// A line for each call.
    #[default]
    Info,
    /// A line for each call that did not do what it should.
    Error,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            socket: paths::CNI_SOCKET_PATH.into(),
            state_dir: paths::STATE_DIR.into(),
            add_deadline: limits::ADD_DEADLINE,
            ignored: vec![KUBE_SYSTEM.to_owned()],
            mode: Mode::default(),
            log: LogLevel::default(),
        }
    }
}

impl Entry {
    /// Reads every key on its own: one that is wrong keeps its default and is named.
    pub fn read(document: &Document<'_>) -> (Self, Vec<Problem>) {
        let mut entry = Self::default();
        let mut problems = Vec::new();
        let mut keep = |result: Result<(), Problem>| problems.extend(result.err());
        keep(absolute(document, "agentSocket").map(|path| set(&mut entry.socket, path)).and_then(|()| {
            if entry.socket.as_os_str().len() <= SOCKET_PATH_MAX {
                return Ok(());
            }
            entry.socket = paths::CNI_SOCKET_PATH.into();
            Err(Problem { key: "agentSocket", rule: "must be a path of at most 107 bytes" })
        }));
        keep(absolute(document, "stateDir").map(|path| set(&mut entry.state_dir, path)));
        keep(deadline(document).map(|deadline| set(&mut entry.add_deadline, deadline)));
        keep(
            document
                .get::<Vec<String>>("ignoredNamespaces", "must be an array of strings")
                .map(|names| entry.ignored.extend(names.unwrap_or_default())),
        );
        keep(
            document
                .get::<String>("releaseNamespace", "must be a string")
                .map(|name| entry.ignored.extend(name.filter(|name| !name.is_empty()))),
        );
        keep(
            document
                .get::<Mode>("managed", "must be \"opt-out\" or \"opt-in\"")
                .map(|mode| set(&mut entry.mode, mode)),
        );
        keep(document.get::<String>("logLevel", "must be a string").map(|level| {
            if matches!(level.as_deref(), Some("warn" | "error" | "off")) {
                entry.log = LogLevel::Error;
            }
        }));
        (entry, problems)
    }
}

fn set<T>(target: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *target = value;
    }
}

fn absolute(document: &Document<'_>, key: &'static str) -> Result<Option<PathBuf>, Problem> {
    const RULE: &str = "must be an absolute path";
    let path: Option<String> = document.get(key, RULE)?;
    match path {
        Some(path) if !path.starts_with('/') || path.contains('\0') => Err(Problem { key, rule: RULE }),
        other => Ok(other.map(PathBuf::from)),
    }
}

fn deadline(document: &Document<'_>) -> Result<Option<Duration>, Problem> {
    const KEY: &str = "addDeadlineSeconds";
    const RULE: &str = "must be a number of seconds, not below 0";
    let seconds: Option<f64> = document.get(KEY, RULE)?;
    let max = limits::ADD_DEADLINE_MAX.as_secs_f64();
    match seconds {
        None => Ok(None),
        Some(seconds) => match Duration::try_from_secs_f64(seconds.min(max)) {
            Ok(deadline) => Ok(Some(deadline)),
            Err(_) => Err(Problem { key: KEY, rule: RULE }),
        },
    }
}

#[cfg(test)]
mod tests;
