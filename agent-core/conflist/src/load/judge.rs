//! The verdicts of both versions, made one.

use std::ffi::{OsStr, OsString};

use crate::json::Document;
use crate::libcni::{self, ReadBy, Seen, Version, Wrong};

use super::{By, DropIn, DropInEntry, DropIns, Entry, Kind, List, Position, Refusal, kind_of};

pub(super) fn both(file_name: &OsStr, bytes: &[u8], drop_ins: DropIns) -> Result<List, Refusal> {
    let file = File { name: file_name, bytes };
    let document = Document::parse(bytes).map_err(|error| {
        file.refusal(By::Both, Wrong { offset: Some(error.offset), reason: error.reason })
    })?;
    let kind = kind_of(file_name);
    let see = |version| match kind {
        Kind::List => libcni::list(version, &document),
        Kind::Single => libcni::single(version, &document),
    };
    let old = see(Version::V1_1_2);
    let new = match see(Version::V1_3_1) {
        Ok(seen) => file.with_drop_ins(seen, drop_ins).map_err(Box::new),
        Err(wrong) => Err(Box::new(file.refusal(By::Libcni1_3, wrong))),
    };
    match (old, new) {
        (Ok(old), Ok((new, drop_ins))) => {
            let entries = old.entries.iter().map(|(node, plugin)| Entry {
                plugin_type: plugin.binary.clone(),
                span: document.span(*node),
                canonical: document.canonical(*node),
            });
            Ok(List {
                file_name: file_name.to_owned(),
                kind,
                name: old.name,
                cni_version_1_1: old.cni_version,
                cni_version_1_3: new.cni_version,
                entries: entries.collect(),
                nodes: old.entries.iter().map(|(node, _)| *node).collect(),
                array: old.array,
                drop_ins,
                document,
            })
        }
        (Err(wrong), new) => {
            let by =
                if new.is_err_and(|refusal| refusal.by == By::Libcni1_3) { By::Both } else { By::Libcni1_1 };
            Err(file.refusal(by, wrong))
        }
        (Ok(_), Err(refusal)) => Err(*refusal),
    }
}

struct File<'a> {
    name: &'a OsStr,
    bytes: &'a [u8],
}

impl File<'_> {
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
