//! A directory as a value, and what `aether-conflist` makes of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use aether_conflist::json::Document;
use aether_conflist::libcni::Version;
use aether_conflist::load::{Content, DropIn, DropIns, List, candidates, drop_in_dir};

/// What lies in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A file with these bytes.
    File(Vec<u8>),
    /// A symbolic link.
    Link(String),
    /// A directory.
    Dir,
}

/// A directory of CNI configurations. Names may hold `/` for what lies deeper.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Case {
    /// What lies in it, by name.
    pub items: Vec<(String, Item)>,
}

/// What a judge says of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The file that it loads or refuses, if there is any.
    pub file: Option<String>,
    /// What it means, or the error.
    pub outcome: Result<Loaded, String>,
}

/// What a list means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The network's name.
    pub name: String,
    /// The CNI version by which the plugins are called.
    pub cni_version: String,
    /// `type` and JSON of each plugin. The JSON of a drop-in is left empty by `aether-conflist`, which does not keep it.
    pub plugins: Vec<(String, Vec<u8>)>,
}

impl Case {
    /// A directory with one file in it.
    pub fn of(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self::default().with(name, bytes)
    }

    /// The same with one file more.
    #[must_use]
    pub fn with(mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.items.push((name.to_owned(), Item::File(bytes.into())));
        self
    }

    /// The same with another thing.
    #[must_use]
    pub fn with_item(mut self, name: &str, item: Item) -> Self {
        self.items.push((name.to_owned(), item));
        self
    }

    /// What `aether-conflist` makes of it for a version, as a verdict.
    pub fn ours(&self, version: Version) -> Verdict {
        let names = self.names_in(Path::new(""));
        let Some(file) = candidates(names).into_iter().next() else {
            return Verdict { file: None, outcome: Err("no file".to_owned()) };
        };
        let shown = Some(file.to_string_lossy().into_owned());
        let bytes = match self.content(Path::new(&file)) {
            Content::Bytes(bytes) => bytes,
            Content::Broken(why) | Content::Unread(why) => return Verdict { file: shown, outcome: Err(why) },
        };
        let drop_ins =
            drop_in_dir(Path::new("/d"), &file, &bytes).map_or(DropIns::none(), |dir| self.drop_ins(&dir));
        let outcome = match List::load_by(version, &file, &bytes, drop_ins) {
            Err(refusal) => Err(refusal.to_string()),
            Ok(list) => {
                let inline =
                    list.entries().iter().map(|entry| (entry.plugin_type.clone(), entry.canonical.clone()));
                let drop_ins = list.drop_ins().iter().map(|entry| (entry.plugin_type.clone(), Vec::new()));
                Ok(Loaded {
                    name: list.name().to_owned(),
                    cni_version: list.cni_version(version).to_owned(),
                    plugins: inline.chain(drop_ins).collect(),
                })
            }
        };
        Verdict { file: shown, outcome }
    }

    /// The list as both versions together see it, from the first candidate.
    pub fn list(&self) -> Option<Result<List, aether_conflist::load::Refusal>> {
        let file = candidates(self.names_in(Path::new(""))).into_iter().next()?;
        let Content::Bytes(bytes) = self.content(Path::new(&file)) else { return None };
        let drop_ins =
            drop_in_dir(Path::new("/d"), &file, &bytes).map_or(DropIns::none(), |dir| self.drop_ins(&dir));
        Some(List::load(&file, &bytes, drop_ins))
    }

    fn drop_ins(&self, dir: &Path) -> DropIns {
        let Ok(inside) = dir.strip_prefix("/d") else { return DropIns::none() };
        if inside.as_os_str().as_encoded_bytes().contains(&0) {
            return DropIns::Broken("a zero byte in the name".to_owned());
        }
        // As the kernel walks: it comes to a name only where all before it are directories.
        let mut at = PathBuf::new();
        for part in inside.components() {
            if part.as_os_str().len() > 255 {
                return DropIns::Broken("a name too long".to_owned());
            }
            at.push(part);
            if self.items.iter().any(|(name, item)| Path::new(name) == at && matches!(item, Item::File(_))) {
                return DropIns::Broken("not a directory".to_owned());
            }
            if !self.items.iter().any(|(name, _)| Path::new(name).starts_with(&at)) {
                return DropIns::none();
            }
        }
        let files = self.names_in(inside).into_iter().map(|file_name| {
            let content = self.content(&inside.join(&file_name));
            DropIn { file_name, content }
        });
        DropIns::Files(files.collect())
    }

    /// The names of everything in a directory of the case that is not a directory.
    fn names_in(&self, dir: &Path) -> Vec<OsString> {
        let inside = self.items.iter().filter(|(_, item)| *item != Item::Dir);
        let inside = inside.filter_map(|(name, _)| {
            let path = PathBuf::from(name);
            (path.parent() == Some(dir)).then(|| path.file_name().map(OsString::from)).flatten()
        });
        inside.collect()
    }

    fn content(&self, path: &Path) -> Content {
        match self.items.iter().find(|(name, _)| Path::new(name) == path) {
            Some((_, Item::File(bytes))) => Content::Bytes(bytes.clone()),
            Some((_, Item::Link(target))) => match self.items.iter().find(|(name, _)| name == target) {
                Some((_, Item::File(bytes))) => Content::Bytes(bytes.clone()),
                _ => Content::Broken("a dangling link, or one to a directory".to_owned()),
            },
            _ => Content::Broken("it is not there".to_owned()),
        }
    }
}

impl Verdict {
    /// In what it differs from a judge's, if it does.
    pub fn differs_from(&self, judge: &Verdict) -> Option<String> {
        if self.file != judge.file {
            return Some(format!("the file is {:?}, the judge says {:?}", self.file, judge.file));
        }
        match (&self.outcome, &judge.outcome) {
            (Err(_), Err(_)) => None,
            (Ok(_), Err(error)) => Some(format!("it is taken, the judge refuses it: {error}")),
            (Err(error), Ok(_)) => Some(format!("it is refused ({error}), the judge takes it")),
            (Ok(ours), Ok(theirs)) => ours.differs_from(theirs),
        }
    }
}

impl Loaded {
    fn differs_from(&self, judge: &Self) -> Option<String> {
        if self.name != judge.name || self.cni_version != judge.cni_version {
            return Some(format!(
                "name and version are {:?} {:?}, the judge says {:?} {:?}",
                self.name, self.cni_version, judge.name, judge.cni_version
            ));
        }
        let types = |loaded: &Self| loaded.plugins.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if types(self) != types(judge) {
            return Some(format!("the types are {:?}, the judge says {:?}", types(self), types(judge)));
        }
        for ((_, ours), (name, theirs)) in self.plugins.iter().zip(&judge.plugins) {
            let canonical = Document::parse(theirs).map(|document| document.canonical(document.root()));
            if !ours.is_empty() && canonical.as_ref() != Ok(ours) {
                return Some(format!(
                    "{name} means {}, the judge says {}",
                    String::from_utf8_lossy(ours),
                    String::from_utf8_lossy(theirs)
                ));
            }
        }
        None
    }
}
