//! Which modules a directory holds, from its names alone (M08): `<name>/{module.toml,module.wasm}` and flat
//! `<name>.toml` + `<name>.wasm`, as the keys of a `ConfigMap` are.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::limits::MODULES_MAX;
use crate::manifest::Name;

/// One name in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// Whether it is a directory, after following a link.
    pub kind: Kind,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// Anything else.
    File,
}

/// Where one module's two files are, from the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The module's name.
    pub name: Name,
    /// Its `module.toml`.
    pub manifest: PathBuf,
    /// Its component.
    pub component: PathBuf,
}

/// A module that is not taken for its name, or for where it lies. It counts as one that cannot be loaded: a policy that
/// runs goes on, and nobody gets past one that does not (M05, M08).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its name, or what stands for it where it has none.
    pub name: Name,
    /// Its `module.toml`, from the directory; nothing where there are two.
    pub manifest: Option<PathBuf>,
    /// Why.
    pub why: LayoutError,
}

/// Something that looks like a module and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The name is not one.
    #[error("{file} is not taken: {why}")]
    Name {
        /// The file or directory.
        file: String,
        /// Why.
        why: String,
    },
    /// Both layouts hold the name.
    #[error("module {name} is there twice, as {name}/ and as {name}.toml; neither is taken: remove one")]
    Twice {
        /// The name.
        name: Name,
    },
    /// A component without a manifest.
    #[error(
        "{file} is not taken: there is no {name}.toml beside it that says what it is for and what it is granted"
    )]
    NoManifest {
        /// The file.
        file: String,
        /// The name.
        name: String,
    },
    /// Too many.
    #[error("module {name} is not taken: at most {MODULES_MAX} modules are")]
    TooMany {
        /// The name.
        name: Name,
    },
}

/// What a directory holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Modules, by name.
    pub places: Vec<Place>,
    /// Modules that are not taken, and why.
    pub refused: Vec<Refused>,
    /// What is no module, and why.
    pub errors: Vec<LayoutError>,
}

impl Found {
    /// All that is not taken, in words.
    pub fn problems(&self) -> Vec<String> {
        self.errors
            .iter()
            .chain(self.refused.iter().map(|refused| &refused.why))
            .map(ToString::to_string)
            .collect()
    }
}

/// Reads the names of a directory. Names that begin with `.` are none of ours: `..data` and its like are how a
/// `ConfigMap` is mounted, and editors leave others.
pub fn read(entries: &[Entry]) -> Found {
    let mut found = Found::default();
    let mut places: BTreeMap<Name, Vec<Place>> = BTreeMap::new();
    let visible = || entries.iter().filter(|entry| !entry.name.starts_with('.'));
    for entry in visible() {
        let (stem, manifest, component) = match entry.kind {
            Kind::Directory => {
                let directory = PathBuf::from(&entry.name);
                (entry.name.as_str(), directory.join("module.toml"), directory.join("module.wasm"))
            }
            Kind::File => match entry.name.strip_suffix(".toml") {
                Some(stem) => (stem, PathBuf::from(&entry.name), format!("{stem}.wasm").into()),
                None => continue,
            },
        };
        match Name::try_from(stem.to_owned()) {
            Err(why) => found.refused.push(Refused {
                name: Name::standing_for(&entry.name),
                manifest: Some(manifest),
                why: LayoutError::Name { file: entry.name.clone(), why },
            }),
            Ok(name) => {
                places.entry(name.clone()).or_default().push(Place { name, manifest, component });
            }
        }
    }
    for entry in visible().filter(|entry| entry.kind == Kind::File) {
        if let Some(stem) = entry.name.strip_suffix(".wasm")
            && !visible().any(|other| other.name.strip_suffix(".toml") == Some(stem))
        {
            found.errors.push(LayoutError::NoManifest { file: entry.name.clone(), name: stem.to_owned() });
        }
    }
    for (name, mut of_name) in places {
        match (of_name.pop(), of_name.is_empty()) {
            (Some(place), true) if found.places.len() >= MODULES_MAX => found.refused.push(Refused {
                name: name.clone(),
                manifest: Some(place.manifest),
                why: LayoutError::TooMany { name },
            }),
            (Some(place), true) => found.places.push(place),
            _ => {
                let why = LayoutError::Twice { name: name.clone() };
                found.refused.push(Refused { name, manifest: None, why });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(names: &[&str]) -> (Vec<String>, Vec<String>) {
        let entries: Vec<Entry> = names
            .iter()
            .map(|name| match name.strip_suffix('/') {
                Some(name) => Entry { name: name.to_owned(), kind: Kind::Directory },
                None => Entry { name: (*name).to_owned(), kind: Kind::File },
            })
            .collect();
        let found = read(&entries);
        let places = found
            .places
            .iter()
            .map(|place| format!("{}={}", place.name, place.component.display()))
            .collect();
        (places, found.problems())
    }

    #[test]
    fn m08_both_layouts_are_read_and_names_of_a_configmap_mount_are_ignored() {
        let (places, errors) = look(&[
            "team/",
            "..data/",
            "..2026_01_01/",
            "ports.toml",
            "ports.wasm",
            "README",
            ".x.swp",
            ".y.toml",
        ]);
        assert_eq!(places, ["ports=ports.wasm", "team=team/module.wasm"]);
        assert!(errors.is_empty(), "{errors:?}");
    }

    #[test]
    fn m08_what_looks_like_a_module_and_is_none_is_said() {
        let (places, errors) = look(&["a/", "a.toml", "a.wasm", "b.wasm", "C.toml"]);
        assert!(places.is_empty());
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors.iter().any(|e| e.contains("C.toml is not taken")), "{errors:?}");
        assert!(errors.iter().any(|e| e.contains("there is no b.toml beside it")), "{errors:?}");
        assert!(errors.iter().any(|e| e.contains("module a is there twice")), "{errors:?}");
    }

    #[test]
    fn m08_the_number_of_modules_is_bounded() {
        let names: Vec<String> = (0..MODULES_MAX + 3).map(|i| format!("m{i}.toml")).collect();
        let (places, errors) = look(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((places.len(), errors.len()), (MODULES_MAX, 3));
    }

    #[test]
    fn m05_what_is_not_taken_for_its_name_or_place_is_still_known_by_name_and_manifest() {
        let file = |name: &str| Entry { name: name.to_owned(), kind: Kind::File };
        let directory = |name: &str| Entry { name: name.to_owned(), kind: Kind::Directory };
        let mut entries = vec![file("Team.toml"), directory("Other"), file("twice.toml"), directory("twice")];
        entries.extend((0..=MODULES_MAX).map(|i| file(&format!("m{i:03}.toml"))));
        let refused = read(&entries).refused;
        let said: Vec<_> = refused
            .iter()
            .map(|one| (one.name.as_str(), one.manifest.as_ref().and_then(|path| path.to_str())))
            .collect();
        let last = format!("m{MODULES_MAX:03}");
        let expected = [
            ("Team.toml", Some("Team.toml")),
            ("Other", Some("Other/module.toml")),
            (&last, Some(&*format!("{last}.toml"))),
            ("twice", None),
        ];
        assert_eq!(said, expected);
    }
}
