//! Reading the sources: which Rust files there are, which are tests, and the names of the tests in them.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::run;

/// One Rust file of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path from the workspace's root.
    pub(crate) path: PathBuf,
    /// The whole text.
    pub(crate) text: String,
}

impl Source {
    /// Whether the whole file is test code.
    pub(crate) fn is_test(&self) -> bool {
        let parts: Vec<_> = self.path.iter().map(|part| part.to_string_lossy()).collect();
        parts.first().is_some_and(|top| top == "tests")
            || parts.iter().any(|part| {
                part == "tests" || part == "tests.rs" || part == "benches" || part == "test-support"
            })
    }

    /// The text before an inline `#[cfg(test)]` module: what is not a test.
    pub(crate) fn product(&self) -> &str {
        let end = self.text.find("\n#[cfg(test)]\nmod ").unwrap_or(self.text.len());
        self.text.get(..end).unwrap_or_default()
    }

    /// The names of the tests in this file, by attribute or inside `proptest!`.
    pub(crate) fn tests(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut marked = false;
        // `both!(name, ...)` makes one test a containerd version of each named function.
        let mut both = false;
        for line in self.text.lines().map(str::trim) {
            if both || line.starts_with("both!(") {
                both = !line.ends_with(");");
                let list = line.trim_start_matches("both!(").trim_end_matches(");");
                let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
                found.extend(names.map(str::to_owned));
                continue;
            }
            if line.starts_with("#[test]")
                || line.starts_with("#[tokio::test")
                || line.starts_with("#[::core::prelude::v1::test]")
            {
                marked = true;
            } else if marked {
                let name = line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ");
                if let Some(name) = name {
                    found.push(name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
                    marked = false;
                } else if !line.starts_with('#') && !line.starts_with("//") && !line.is_empty() {
                    marked = false;
                }
            }
        }
        found
    }
}

/// Every Rust file that git tracks or would track.
pub(crate) fn all() -> Result<Vec<Source>> {
    let mut git = std::process::Command::new("git");
    git.current_dir(run::root()).args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"]);
    let mut sources = Vec::new();
    for line in run::output(&mut git)?.lines() {
        let path = Path::new(line);
        let full = run::root().join(path);
        if full.exists() {
            let text = std::fs::read_to_string(&full).with_context(|| format!("read {}", full.display()))?;
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_are_found_by_their_attributes() {
        let text = "#[test]\nfn k01_a() {}\n#[tokio::test(flavor = \"x\")]\n#[allow(x)]\nasync fn k02_b() {}\nfn helper() {}\n";
        let source = Source { path: "a/src/lib.rs".into(), text: text.to_owned() };
        assert_eq!(source.tests(), ["k01_a", "k02_b"]);
        let both = Source {
            path: "tests/a.rs".into(),
            text: "both!(\n    k01_c,\n    k01_d,\n);\nboth!(k01_e);\n".to_owned(),
        };
        assert_eq!(both.tests(), ["k01_c", "k01_d", "k01_e"]);
        assert!(!source.is_test());
    }
}
