//! The lists of `tests/fixtures/conflists`.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::case::{Case, Item};

/// What the index says of one list.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// Whose list it is.
    pub owner: String,
    /// The file, below the directory of fixtures.
    pub file: String,
    /// What is expected; the index says which there are.
    pub verdict: String,
    /// A part of the refusal's text.
    pub reason: Option<String>,
    /// What is special about it.
    pub note: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    list: Vec<Fixture>,
}

/// The directory of the lists.
pub fn dir() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(1).unwrap_or(here).join("fixtures/conflists")
}

/// All lists of the index.
pub fn all() -> anyhow::Result<Vec<Fixture>> {
    let path = dir().join("index.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let index: Index = toml::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    Ok(index.list)
}

impl Fixture {
    /// The file's bytes.
    pub fn bytes(&self) -> anyhow::Result<Vec<u8>> {
        let path = dir().join(&self.file);
        std::fs::read(&path).with_context(|| format!("read {}", path.display()))
    }

    /// The file's name on the node.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    /// A directory with this file alone.
    pub fn case(&self) -> anyhow::Result<Case> {
        Ok(Case::of(self.file_name(), self.bytes()?))
    }

    /// The whole folder, as on the node.
    pub fn folder(&self) -> anyhow::Result<Case> {
        let path = dir().join(&self.file);
        let folder = path.parent().context("the folder")?;
        let mut case = Case::default();
        collect(folder, folder, &mut case)?;
        Ok(case)
    }
}

fn collect(root: &Path, dir: &Path, case: &mut Case) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))? {
        let entry = entry?;
        let path = entry.path();
        let name = path.strip_prefix(root)?.to_str().context("a name that is no UTF-8")?.to_owned();
        if entry.file_type()?.is_dir() {
            case.items.push((name, Item::Dir));
            collect(root, &path, case)?;
        } else {
            case.items.push((name, Item::File(std::fs::read(&path)?)));
        }
    }
    Ok(())
}
