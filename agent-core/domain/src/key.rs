//! The key of everything kept about one attachment: container id and interface (K08).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::ids::{ContainerId, IfName};
use crate::text::sha256;

/// One interface of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The sandbox.
    pub container: ContainerId,
    /// The interface inside it.
    pub interface: IfName,
}

/// The longest stem that is written out in full; a longer one is cut and made unique by a hash. The limit of a
/// file name is 255 bytes, and a stamp, an ending and a temporary suffix are added to it.
const MAX_STEM: usize = 150;

impl Key {
    /// The key of `container` and `interface`.
    pub fn new(container: ContainerId, interface: IfName) -> Self {
        Self { container, interface }
    }

    /// The stem of this key's file names (S01): each part with every byte outside `[A-Za-z0-9_-]` written as `%XX`,
    /// joined by `+`. It is never a path, never hidden, and holds no `.`, so that an ending can follow it.
    pub fn file_stem(&self) -> String {
        let mut stem = escape(self.container.as_str());
        stem.push('+');
        stem.push_str(&escape(self.interface.as_str()));
        if stem.len() <= MAX_STEM {
            return stem;
        }
        let mut cut: String = stem.chars().take(MAX_STEM - 65).collect();
        cut.push('=');
        cut.push_str(&sha256(stem.as_bytes()));
        cut
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.container, self.interface)
    }
}

fn escape(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(container: &str, interface: &str) -> Key {
        Key::new(container.parse().unwrap(), interface.parse().unwrap())
    }

    #[test]
    fn s01_a_stem_is_an_encoding_and_not_the_raw_id() {
        assert_eq!(key("abc", "eth0").file_stem(), "abc+eth0");
        assert_eq!(key("a.b", "e.th").file_stem(), "a%2Eb+e%2Eth");
        let long = key(&"a".repeat(1000), "eth0").file_stem();
        assert_eq!(long.len(), MAX_STEM);
        assert_ne!(long, key(&"a".repeat(999), "eth0").file_stem());
    }

    proptest! {
        #[test]
        fn s01_stems_are_unique_and_safe(
            a in "[a-zA-Z0-9][a-zA-Z0-9_.-]{0,200}", b in "[a-zA-Z0-9][a-zA-Z0-9_.-]{0,200}",
            i in "[a-z.+%@]{1,13}z", j in "[a-z.+%@]{1,13}z",
        ) {
            let (x, y) = (key(&a, &i), key(&b, &j));
            prop_assert_eq!(x == y, x.file_stem() == y.file_stem());
            let safe = |c: char| c.is_ascii_alphanumeric() || "_-%+=".contains(c);
            prop_assert!(x.file_stem().chars().all(safe));
            prop_assert!(x.file_stem().len() <= MAX_STEM);
        }
    }
}
