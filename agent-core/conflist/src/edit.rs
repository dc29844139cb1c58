//! Putting our entry into a list and taking it out again, byte by byte (I02, I09).

use std::ops::Range;

use crate::json::Document;
use crate::load::{DropIns, Entry, Kind, List, Taken};
use crate::own::OwnEntry;

mod layout;

/// Why a list is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file holds one plugin's configuration, not a list (I06).
    #[error(
        "{file} holds a single plugin's configuration, which cannot be chained to; a list needs the ending .conflist"
    )]
    Single {
        /// The file.
        file: String,
    },
    /// The list would hold only our entry, and no pod would get a network (I07).
    #[error(
        "{file} holds no entry but ours; it is left alone until its owner writes the node's own network into it"
    )]
    OnlyOurs {
        /// The file.
        file: String,
    },
    /// An entry of ours stands in a drop-in, which is never touched (I04).
    #[error(
        "{drop_in}, a drop-in of {file}, holds an entry of ours, which only containerd 2 would load; remove that file first"
    )]
    InDropIn {
        /// The list's file.
        file: String,
        /// The drop-in's file.
        drop_in: String,
    },
    /// libcni would not take the edited list (an entry nested too deeply, for example).
    #[error("{file} would not be taken by libcni with our entry in it, so it is left alone: {reason}")]
    Unsound {
        /// The file.
        file: String,
        /// Why not.
        reason: String,
    },
    /// The list holds only `loopback`, which gives a pod no network (I04).
    #[error("{file} holds only loopback; there is no network to chain to")]
    LoopbackOnly {
        /// The file.
        file: String,
    },
}

/// The list's bytes with `wanted` as the only entry of ours.
///
/// - None of ours there: it goes after the last entry, laid out like its neighbours.
/// - One of ours that equals `wanted` as a JSON value: the bytes come back unchanged.
/// - One of ours that differs: its object is replaced where it stands.
/// - Several: the last one stays (and is replaced if it differs), the others go.
/// - Ours before every other: it goes after the last one. Run first, it would have no result to hand on.
///
/// Everything outside the inserted object and its comma keeps its bytes.
pub fn put(list: &List, wanted: &OwnEntry) -> Result<Vec<u8>, EditError> {
    let (foreign, ours) = parts(list)?;
    if let Taken::By(version) = list.taken() {
        let reason = format!("the file was only read as {version} does");
        return Err(EditError::Unsound { file: file(list), reason });
    }
    if list.is_loopback_only() {
        return Err(EditError::LoopbackOnly { file: file(list) });
    }
    if let Some(drop_in) = list.drop_ins().iter().find(|entry| entry.is_ours()) {
        let drop_in = format!("{}/{}", list.name(), drop_in.file_name.display());
        return Err(EditError::InDropIn { file: file(list), drop_in });
    }
    let layout = layout::Layout::of(list, &foreign);
    let mut changes = Vec::new();
    match ours.split_last().filter(|_| place(list) != Some(0)) {
        None => {
            changes.extend(removals(list, &ours));
            let mut inserted = layout.separator();
            inserted.extend(layout.render(wanted.document()));
            let end = foreign.last().map_or(0, |index| span(list, *index).end);
            changes.push(Change { span: end..end, with: inserted });
        }
        Some((kept, doubles)) => {
            changes.extend(removals(list, doubles));
            if !list.entries().get(*kept).is_some_and(|entry| wanted.equals(entry)) {
                changes.push(Change { span: span(list, *kept), with: layout.render(wanted.document()) });
            }
        }
    }
    let edited = apply(list.bytes(), changes);
    check(list, &edited, 1)?;
    Ok(edited)
}

/// The list's bytes without any entry of ours; what [`put`] inserted goes exactly, so that putting and removing gives
/// the original bytes. Without an entry of ours the bytes come back unchanged.
///
/// An entry of ours in a drop-in stays, and is no reason to refuse.
pub fn remove(list: &List) -> Result<Vec<u8>, EditError> {
    if list.ours().next().is_none() {
        return Ok(list.bytes().to_vec());
    }
    let (_, ours) = parts(list)?;
    let edited = apply(list.bytes(), removals(list, &ours).collect());
    check(list, &edited, 0)?;
    Ok(edited)
}

/// Whether the entry of ours in `new` stands where [`put`] leaves or sets it: before the same number of others as the
/// last one of ours in `old`, or after all of them (I09). Anywhere else our plugin would be run before the plugins that it
/// needs the result of.
pub fn keeps_place(old: &List, new: &List) -> bool {
    let others = new.entries().iter().filter(|entry| !entry.is_ours()).count();
    place(new).is_some_and(|at| at == others || at > 0 && Some(at) == place(old))
}

/// How many entries of others stand before the last one of ours.
pub(crate) fn place(list: &List) -> Option<usize> {
    let ours = list.entries().iter().rposition(Entry::is_ours)?;
    Some(list.entries().iter().take(ours).filter(|entry| !entry.is_ours()).count())
}

/// The indices of the foreign entries, of which there is at least one, and of ours.
fn parts(list: &List) -> Result<(Vec<usize>, Vec<usize>), EditError> {
    if list.kind() == Kind::Single {
        return Err(EditError::Single { file: file(list) });
    }
    let is_ours = |index: &usize| list.entries().get(*index).is_some_and(Entry::is_ours);
    let (ours, foreign): (Vec<_>, Vec<_>) = (0..list.entries().len()).partition(is_ours);
    if foreign.is_empty() { Err(EditError::OnlyOurs { file: file(list) }) } else { Ok((foreign, ours)) }
}

/// Some bytes of the list, and what stands there instead.
struct Change {
    span: Range<usize>,
    with: Vec<u8>,
}

/// Takes entries out, of which at least one stays, each with one comma: the one before it, and with it exactly what
/// [`put`] inserts; where every entry before it goes too, the one behind it.
fn removals(list: &List, gone: &[usize]) -> impl Iterator<Item = Change> {
    // `gone` is in order, so the first index that it leaves out is the first that differs from its place.
    let first_kept = gone.iter().enumerate().take_while(|(place, index)| place == *index).count();
    gone.iter().map(move |index| {
        let span = if *index > first_kept {
            span(list, index - 1).end..span(list, *index).end
        } else {
            span(list, *index).start..span(list, index + 1).start
        };
        Change { span, with: Vec::new() }
    })
}

/// Applies changes, which do not overlap.
fn apply(bytes: &[u8], mut changes: Vec<Change>) -> Vec<u8> {
    changes.sort_by_key(|change| change.span.start);
    let mut edited = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for change in changes {
        edited.extend_from_slice(bytes.get(at..change.span.start).unwrap_or_default());
        edited.extend_from_slice(&change.with);
        at = change.span.end;
    }
    edited.extend_from_slice(bytes.get(at..).unwrap_or_default());
    edited
}

/// No list is given out that libcni would refuse, or that holds another number of our entries than it should.
fn check(list: &List, edited: &[u8], ours: usize) -> Result<(), EditError> {
    let unsound = |reason| EditError::Unsound { file: file(list), reason };
    let again = match list.taken() {
        Taken::ByBoth => List::load(list.file_name(), edited, DropIns::none()),
        Taken::By(version) => List::load_by(version, list.file_name(), edited, DropIns::none()),
    };
    let again = again.map_err(|refusal| unsound(refusal.reason))?;
    let found = again.ours().count();
    if found == ours {
        Ok(())
    } else {
        Err(unsound(format!("it would hold {found} entries of ours, not {ours}")))
    }
}

fn span(list: &List, index: usize) -> Range<usize> {
    list.entries().get(index).map_or(0..0, |entry| entry.span.clone())
}

fn file(list: &List) -> String {
    list.file_name().display().to_string()
}

fn gap(document: &Document, from: usize, to: usize) -> &[u8] {
    document.bytes().get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests;
