//! The verdicts of both versions, made one.

use std::ffi::{OsStr, OsString};

use crate::json::Document;
use crate::libcni::{self, ReadBy, Seen, Version, Wrong};

use super::{By, DropIn, DropInEntry, DropIns, Entry, Kind, List, Position, Refusal, Taken, kind_of};

/// As both versions see it.
pub(super) fn both(file_name: &OsStr, bytes: &[u8], drop_ins: DropIns) -> Result<List, Refusal> {
    let file = File { name: file_name, bytes };
    let document = file.parse(By::Both)?;
    let old = file.see(Version::V1_1_2, &document, DropIns::none());
    let new = file.see(Version::V1_3_1, &document, drop_ins);
    match (old, new) {
        (Ok((old, _)), Ok((new, drop_ins))) => {
            Ok(file.list(Taken::ByBoth, document, old, new.cni_version, drop_ins))
        }
        (Err(old), Err(new)) if new.by == By::Libcni1_3 => Err(Refusal { by: By::Both, ..*old }),
        (Err(old), _) => Err(*old),
        (Ok(_), Err(new)) => Err(*new),
    }
}

/// As one version sees it.
pub(super) fn one(
    version: Version,
    file_name: &OsStr,
    bytes: &[u8],
    drop_ins: DropIns,
) -> Result<List, Refusal> {
    let file = File { name: file_name, bytes };
    let document = file.parse(by(version))?;
    let (seen, drop_ins) = file.see(version, &document, drop_ins).map_err(|refusal| *refusal)?;
    let cni_version = seen.cni_version.clone();
    Ok(file.list(Taken::By(version), document, seen, cni_version, drop_ins))
}

fn by(version: Version) -> By {
    match version {
        Version::V1_1_2 => By::Libcni1_1,
        Version::V1_3_1 => By::Libcni1_3,
    }
}

struct File<'a> {
    name: &'a OsStr,
    bytes: &'a [u8],
}

impl File<'_> {
    fn parse(&self, by: By) -> Result<Document, Refusal> {
        Document::parse(self.bytes)
            .map_err(|error| self.refusal(by, Wrong { offset: Some(error.offset), reason: error.reason }))
    }

    fn see(
        &self,
        version: Version,
        document: &Document,
        drop_ins: DropIns,
    ) -> Result<(Seen, Vec<DropInEntry>), Box<Refusal>> {
        let seen = match kind_of(self.name) {
            Kind::List => libcni::list(version, document),
            Kind::Single => libcni::single(version, document),
        };
        let seen = seen.map_err(|wrong| self.refusal(by(version), wrong))?;
        Ok(self.with_drop_ins(seen, drop_ins)?)
    }

    fn list(
        &self,
        taken: Taken,
        document: Document,
        seen: Seen,
        cni_version_1_3: String,
        drop_ins: Vec<DropInEntry>,
    ) -> List {
        let entries = seen.entries.iter().map(|(node, plugin)| Entry {
            plugin_type: plugin.binary.clone(),
            span: document.span(*node),
            canonical: document.canonical(*node),
        });
        List {
            file_name: self.name.to_owned(),
            taken,
            kind: kind_of(self.name),
            name: seen.name,
            cni_version_1_1: seen.cni_version,
            cni_version_1_3,
            entries: entries.collect(),
            nodes: seen.entries.iter().map(|(node, _)| *node).collect(),
            array: seen.array,
            drop_ins,
            document,
        }
    }

    fn refusal(&self, by: By, wrong: Wrong) -> Refusal {
        let at = wrong.offset.map(|offset| Position::of(self.bytes, offset));
        Refusal { file: self.name.to_owned(), by, at, reason: wrong.reason }
    }

    /// What libcni 1.3 makes of the file with its drop-ins.
    fn with_drop_ins(&self, seen: Seen, drop_ins: DropIns) -> Result<(Seen, Vec<DropInEntry>), Refusal> {
        let mut entries = Vec::new();
        if seen.reads_drop_ins {
            let files = match drop_ins {
                DropIns::Files(files) => libcni::sorted_drop_ins(files),
                DropIns::Broken(why) => return Err(self.no_directory(By::Libcni1_3, &seen.name, &why)),
                DropIns::Unread(why) => return Err(self.no_directory(By::Us, &seen.name, &why)),
            };
            for file in files {
                entries.push(read_drop_in(file, &seen.name)?);
            }
        }
        if seen.entries.is_empty() && entries.is_empty() {
            let reason = format!("the list has no \"plugins\", and there is no {}/*.conf", seen.name);
            return Err(self.refusal(By::Libcni1_3, Wrong { offset: None, reason }));
        }
        Ok((seen, entries))
    }

    fn no_directory(&self, by: By, name: &str, why: &str) -> Refusal {
        let reason = format!("the drop-in directory {name:?} cannot be read: {why}");
        self.refusal(by, Wrong { offset: None, reason })
    }
}

fn read_drop_in(file: DropIn, directory: &str) -> Result<DropInEntry, Refusal> {
    let mut shown = OsString::from(directory);
    shown.push("/");
    shown.push(&file.file_name);
    let bytes = match libcni::content(&file.content) {
        Ok(bytes) => bytes,
        Err((reader, why)) => {
            let by = if reader == ReadBy::Nobody { By::Libcni1_3 } else { By::Us };
            return Err(Refusal { file: shown, by, at: None, reason: format!("it cannot be read: {why}") });
        }
    };
    let wrong = match Document::parse(bytes) {
        Err(error) => Wrong { offset: Some(error.offset), reason: error.reason },
        Ok(document) => match libcni::drop_in(&document) {
            Ok(plugin) => {
                return Ok(DropInEntry { file_name: file.file_name, plugin_type: plugin.binary });
            }
            Err(wrong) => wrong,
        },
    };
    let at = wrong.offset.map(|offset| Position::of(bytes, offset));
    Err(Refusal { file: shown, by: By::Libcni1_3, at, reason: wrong.reason })
}
