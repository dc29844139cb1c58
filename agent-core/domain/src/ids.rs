//! Names that come from outside, each checked once, where it enters.

use serde::{Deserialize, Serialize};

/// Why a name from outside was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The value is empty.
    #[error("{what} is empty")]
    Empty {
        /// Which name.
        what: &'static str,
    },
    /// The value breaks the rule of its kind.
    #[error("{what} {value:?} is not valid: {rule}")]
    Invalid {
        /// Which name.
        what: &'static str,
        /// The value, cut to a bounded length.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
}

impl IdError {
    fn invalid(what: &'static str, value: &str, rule: &'static str) -> Self {
        Self::Invalid { what, value: value.chars().take(128).collect(), rule }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(value: String) -> Result<Self, IdError> {
                Self::check(&value)?;
                Ok(Self(value))
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(value: &str) -> Result<Self, IdError> {
                Self::try_from(value.to_owned())
            }
        }
    };
}

name! {
    /// A sandbox's id (`CNI_CONTAINERID`): a letter or digit, then letters, digits, `_`, `.`, `-` (libcni's rule;
    /// upper case is legal).
    ContainerId
}
name! {
    /// An interface inside the pod (`CNI_IFNAME`): libcni's rule, at most 15 bytes, no `/`, `:` or white space.
    IfName
}
name! {
    /// A CNI network's name, the `name` of the list.
    NetworkName
}
name! {
    /// A request's id, made by the plugin, that joins its log line with the agent's (K14).
    RequestId
}
name! {
    /// What names one install (I01): the chart's release and revision as `release/revision`, or any word.
    InstallId
}

impl ContainerId {
    fn check(value: &str) -> Result<(), IdError> {
        const WHAT: &str = "container id";
        let first = value.bytes().next().ok_or(IdError::Empty { what: WHAT })?;
        let rest = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        if !first.is_ascii_alphanumeric() || !value.bytes().all(rest) {
            let rule = "a letter or digit, then letters, digits, '_', '.', '-'";
            return Err(IdError::invalid(WHAT, value, rule));
        }
        if value.len() > 1024 {
            return Err(IdError::invalid(WHAT, value, "at most 1024 bytes"));
        }
        Ok(())
    }
}

impl IfName {
    fn check(value: &str) -> Result<(), IdError> {
        const WHAT: &str = "interface name";
        if value.is_empty() {
            return Err(IdError::Empty { what: WHAT });
        }
        if value.len() > 15 {
            return Err(IdError::invalid(WHAT, value, "at most 15 bytes"));
        }
        if value == "."
            || value == ".."
            || value.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c == '\0')
        {
            return Err(IdError::invalid(WHAT, value, "not '.' or '..', no '/', ':', NUL or white space"));
        }
        Ok(())
    }
}

impl NetworkName {
    fn check(value: &str) -> Result<(), IdError> {
        // containerd loads lists of any name (facts: "bad name/!" accepted), so only a bound is enforced.
        bounded("network name", value, 4096)
    }
}

impl RequestId {
    fn check(value: &str) -> Result<(), IdError> {
        bounded("request id", value, 64)
    }
}

impl InstallId {
    fn check(value: &str) -> Result<(), IdError> {
        bounded("install id", value, 256)?;
        if value.is_empty() { Err(IdError::Empty { what: "install id" }) } else { Ok(()) }
    }
}

fn bounded(what: &'static str, value: &str, max: usize) -> Result<(), IdError> {
    if value.len() > max || value.contains('\0') {
        return Err(IdError::invalid(what, value, "too long, or holds a NUL"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k01_upper_case_container_ids_are_legal_and_foreign_bytes_are_not() {
        for good in ["a", "A", "0", "aB_9.-", "59e3eeb07bf1b08cac9cf75800f927f3"] {
            assert!(good.parse::<ContainerId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "é", "../x", "a\0"] {
            assert!(bad.parse::<ContainerId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn k08_interface_names_follow_libcni() {
        for good in ["eth0", "a", "veth-0.1@x", "123456789012345"] {
            assert!(good.parse::<IfName>().is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a:b", "a b", "1234567890123456"] {
            assert!(bad.parse::<IfName>().is_err(), "{bad:?}");
        }
    }
}
