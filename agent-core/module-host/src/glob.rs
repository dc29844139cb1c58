//! Names with `*`, as grants write them.

use serde::Deserialize;

/// A pattern for one file name: `*` stands for any number of characters but `/`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob(String);

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.contains('/') {
            return Err(format!("{text:?} is no pattern for a file name: it is empty or holds a /"));
        }
        Ok(Self(text))
    }
}

impl std::fmt::Display for Glob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Glob {
    /// Whether the whole name matches.
    pub fn matches(&self, name: &str) -> bool {
        if name.contains('/') {
            return false;
        }
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
        let mut parts = parts.peekable();
        if parts.peek().is_none() {
            return rest.is_empty();
        }
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return rest.ends_with(part);
            }
            match rest.find(part) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_number_of_characters_but_a_slash() {
        for (glob, name, matches) in [
            ("*", "10-flannel.conflist", true),
            ("*.conflist", "10-flannel.conflist", true),
            ("*.conflist", "10-flannel.conf", false),
            ("10-*.conflist", "10-.conflist", true),
            ("10-*.conflist", "11-x.conflist", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "abc", true),
            ("a*b*b", "ab", false),
            ("exact", "exact", true),
            ("exact", "exact.not", false),
            ("*", "../x", false),
        ] {
            assert_eq!(Glob::try_from(glob.to_owned()).unwrap().matches(name), matches, "{glob} {name}");
        }
        assert!(Glob::try_from("a/b".to_owned()).is_err());
    }
}
