//! Reading the packages of the contract, now and as released, and comparing them.

use std::path::{Path, PathBuf};

use wit_parser::{Docs, PackageId, Resolve, TypeDefKind};

/// What the packages of a release are called beside those of today.
const APART: &str = "-released";

/// The texts of the packages, in the order in which they need each other.
pub(crate) struct Wits(Vec<(String, String)>);

/// `wit/`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// The contract as it is now.
pub(crate) fn current() -> Wits {
    Wits::read(&folder())
}

/// Every file below a folder.
pub(crate) fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

impl Wits {
    /// Reads the packages that a folder holds, one a folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut packages = Vec::new();
        for name in ["base", "conflist", "node", "upstreams", "behaviour", "policy"] {
            let path = folder.join(name).join(format!("{name}.wit"));
            let text =
                std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            packages.push((name.to_owned(), text));
        }
        Self(packages)
    }

    /// A copy in which one text of a package is replaced.
    pub(crate) fn edited(&self, package: &str, from: &str, to: &str) -> Self {
        let edit = |(name, text): &(String, String)| {
            if name != package {
                return (name.clone(), text.clone());
            }
            assert!(text.contains(from), "{package} does not hold {from:?}");
            (name.clone(), text.replace(from, to))
        };
        Self(self.0.iter().map(edit).collect())
    }

    /// Worlds, each with its package.
    pub(crate) fn worlds(&self) -> Vec<(String, String)> {
        let mut resolve = Resolve::default();
        let mut worlds = Vec::new();
        for (name, package) in self.push(&mut resolve, "") {
            worlds.extend(resolve.packages[package].worlds.keys().map(|world| (name.clone(), world.clone())));
        }
        worlds
    }

    fn push(&self, resolve: &mut Resolve, apart: &str) -> Vec<(String, PackageId)> {
        let push = |(name, text): &(String, String)| {
            let text = versions(text, apart);
            let id = resolve.push_str(format!("{name}.wit"), &text);
            (name.clone(), id.unwrap_or_else(|error| panic!("{name}: {error:?}")))
        };
        self.0.iter().map(push).collect()
    }
}

/// The text with something behind each `@1.2.3`.
fn versions(text: &str, apart: &str) -> String {
    let mut parts = text.split('@');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let mut end = part.find(|c| !digits(c)).unwrap_or(part.len());
        // The dot before what is taken out of a package is none of the version's.
        if part[..end].ends_with('.') {
            end -= 1;
        }
        all.extend(["@", &part[..end], if end > 0 { apart } else { "" }, &part[end..]]);
    }
    all
}

/// How a world of today breaks a module that was built for an old one; none where it does not.
pub(crate) fn breach(old: &Wits, new: &Wits, package: &str, world: &str) -> Option<String> {
    let mut resolve = Resolve::default();
    let find = |packages: Vec<(String, PackageId)>, resolve: &Resolve| {
        let (_, id) = packages.into_iter().find(|(name, _)| name == package)?;
        resolve.select_world(&[id], Some(world)).ok()
    };
    let pushed = old.push(&mut resolve, APART);
    let prev = find(pushed, &resolve).expect("a world of the release");
    let pushed = new.push(&mut resolve, "");
    let Some(new) = find(pushed, &resolve) else {
        return Some(format!("there is no world {world} any more"));
    };
    wit_component::semver_check(resolve, prev, new).err().map(|error| format!("{error:#}"))
}

/// What has no comment.
pub(crate) fn undocumented(wits: &Wits) -> Vec<String> {
    let mut resolve = Resolve::default();
    let packages = wits.push(&mut resolve, "");
    let mut missing = Vec::new();
    let mut look = |name: String, docs: &Docs| {
        if docs.is_empty() {
            missing.push(name);
        }
    };
    for (package, id) in packages {
        look(package.clone(), &resolve.packages[id].docs);
        for (world, id) in &resolve.packages[id].worlds {
            look(format!("{package}/{world}"), &resolve.worlds[*id].docs);
        }
        for (interface, id) in &resolve.packages[id].interfaces {
            let interface = format!("{package}/{interface}");
            let found = &resolve.interfaces[*id];
            look(interface.clone(), &found.docs);
            for (function, found) in &found.functions {
                look(format!("{interface}.{function}"), &found.docs);
            }
            for (name, id) in &found.types {
                let found = &resolve.types[*id];
                let name = format!("{interface}.{name}");
                let parts: Vec<(&String, &Docs)> = match &found.kind {
                    // What is used from elsewhere is documented there.
                    TypeDefKind::Type(wit_parser::Type::Id(_)) => continue,
                    TypeDefKind::Record(record) => record.fields.iter().map(|f| (&f.name, &f.docs)).collect(),
                    TypeDefKind::Variant(variant) => {
                        variant.cases.iter().map(|c| (&c.name, &c.docs)).collect()
                    }
                    TypeDefKind::Enum(cases) => cases.cases.iter().map(|c| (&c.name, &c.docs)).collect(),
                    _ => Vec::new(),
                };
                for (part, docs) in parts {
                    look(format!("{name}.{part}"), docs);
                }
                look(name, &found.docs);
            }
        }
    }
    missing
}
