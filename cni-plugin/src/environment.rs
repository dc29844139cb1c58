//! The `CNI_*` variables.

use std::ffi::{OsStr, OsString};

use aether_domain::ids::IdError;
use aether_domain::key::Key;

use crate::failure::{Failure, code};

/// What the runtime wants (K01).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// A pod is to be made.
    Add,
    /// A pod is to be forgotten.
    Del,
    /// Is the pod still as it was made?
    Check,
    /// Everything but the listed pods is to be forgotten.
    Gc,
    /// Could an ADD be served?
    Status,
    /// Which versions are known?
    Version,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 6] = [Self::Add, Self::Del, Self::Check, Self::Gc, Self::Status, Self::Version];

    /// The value of `CNI_COMMAND`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Gc => "GC",
            Self::Status => "STATUS",
            Self::Version => "VERSION",
        }
    }
}

/// The variables as they came; an empty one is like one that is not set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `CNI_COMMAND`
    pub command: Option<OsString>,
    /// `CNI_CONTAINERID`
    pub container: Option<OsString>,
    /// `CNI_IFNAME`
    pub interface: Option<OsString>,
    /// `CNI_NETNS`
    pub netns: Option<OsString>,
    /// `CNI_ARGS`
    pub args: Option<OsString>,
}

impl Environment {
    /// Takes each variable from `lookup`.
    pub fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.is_empty());
        Self {
            command: get("CNI_COMMAND"),
            container: get("CNI_CONTAINERID"),
            interface: get("CNI_IFNAME"),
            netns: get("CNI_NETNS"),
            args: get("CNI_ARGS"),
        }
    }

    /// The command; `None` when there is none, which is how a person runs this.
    pub fn command(&self) -> Result<Option<Command>, Failure> {
        let Some(given) = &self.command else { return Ok(None) };
        match Command::ALL.into_iter().find(|command| given == command.name()) {
            Some(command) => Ok(Some(command)),
            None => Err(invalid(format!(
                "CNI_COMMAND is {:?} and none of ADD, DEL, CHECK, GC, STATUS, VERSION: is the runtime newer than aether-cni {}?",
                shorten(given),
                env!("CARGO_PKG_VERSION")
            ))),
        }
    }

    /// Container id and interface (K08).
    pub fn key(&self) -> Result<Key, Failure> {
        self.required(&[("CNI_CONTAINERID", &self.container), ("CNI_IFNAME", &self.interface)])?;
        let container = parse("CNI_CONTAINERID", self.container.as_deref())?;
        let interface = parse("CNI_IFNAME", self.interface.as_deref())?;
        Ok(Key::new(container, interface))
    }

    /// Container id, interface and the path of the namespace.
    pub fn key_and_netns(&self) -> Result<(Key, String), Failure> {
        self.required(&[
            ("CNI_CONTAINERID", &self.container),
            ("CNI_NETNS", &self.netns),
            ("CNI_IFNAME", &self.interface),
        ])?;
        let key = self.key()?;
        let netns = self.netns.as_deref().and_then(OsStr::to_str);
        let netns = netns.ok_or_else(|| invalid("CNI_NETNS is no valid UTF-8".to_owned()))?;
        Ok((key, netns.to_owned()))
    }

    fn required(&self, variables: &[(&str, &Option<OsString>)]) -> Result<(), Failure> {
        let missing: Vec<&str> =
            variables.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let command = self.command.as_deref().map(shorten).unwrap_or_default();
        Err(invalid(format!("{} not set, and {command} needs it", missing.join(", "))))
    }
}

fn parse<T: std::str::FromStr<Err = IdError>>(name: &str, value: Option<&OsStr>) -> Result<T, Failure> {
    let text = value.and_then(OsStr::to_str).ok_or_else(|| invalid(format!("{name} is no valid UTF-8")))?;
    // The value is not repeated: a DEL error must not hold the words that make containerd swallow it (K07).
    text.parse().map_err(|error| match error {
        IdError::Empty { .. } => invalid(format!("{name} is empty")),
        IdError::Invalid { rule, .. } => invalid(format!("{name} is not usable: {rule}")),
    })
}

fn shorten(value: impl AsRef<OsStr>) -> String {
    value.as_ref().to_string_lossy().chars().take(64).collect()
}

fn invalid(details: String) -> Failure {
    Failure::new(code::INVALID_ENVIRONMENT, "invalid environment variables", details)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment::read(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn k01_every_command_is_known_by_its_name() {
        for command in Command::ALL {
            let environment = environment(&[("CNI_COMMAND", command.name())]);
            assert_eq!(environment.command(), Ok(Some(command)));
        }
        assert_eq!(environment(&[("CNI_COMMAND", "")]).command(), Ok(None));
        let failure = environment(&[("CNI_COMMAND", "add")]).command().unwrap_err();
        assert_eq!(failure.code, 4);
        assert!(failure.details.contains("CNI_COMMAND") && failure.details.contains("\"add\""), "{failure}");
    }

    #[test]
    fn k01_missing_variables_are_named() {
        let failure =
            environment(&[("CNI_COMMAND", "ADD"), ("CNI_IFNAME", "eth0")]).key_and_netns().unwrap_err();
        assert_eq!(failure.code, 4);
        assert!(failure.details.contains("CNI_CONTAINERID, CNI_NETNS not set"), "{failure}");
        assert!(!failure.details.contains("CNI_IFNAME"), "{failure}");
    }

    #[test]
    fn k07_no_value_is_repeated_in_an_error_of_del() {
        for (container, interface) in [("not found", "eth0"), ("a", "not found")] {
            let failure =
                environment(&[("CNI_CONTAINERID", container), ("CNI_IFNAME", interface)]).key().unwrap_err();
            assert_eq!(failure.code, 4);
            assert!(!failure.to_string().contains("not found"), "{failure}");
        }
    }
}
