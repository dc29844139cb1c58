//! How libcni 1.3 chooses the version by which it calls the plugins.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::json::{Document, Kind, Node};

use super::Wrong;

/// The newest version that libcni 1.3.1 knows.
const CURRENT: [i64; 3] = [1, 1, 0];

/// The highest known version of `cniVersions` and `cniVersion`. Without `cniVersions` the latter stands, unread.
pub(super) fn choose(
    document: &Document,
    map: &BTreeMap<String, Node>,
    declared: String,
) -> Result<String, Wrong> {
    let Some(versions) = map.get("cniVersions").copied() else { return Ok(declared) };
    if document.kind(versions) != Kind::Array {
        return Err(Wrong::kind(document, versions, "the list's \"cniVersions\"", "an array"));
    }
    let mut known = Vec::new();
    for item in document.items(versions) {
        if document.kind(item) != Kind::String {
            return Err(Wrong::kind(document, item, "an element of \"cniVersions\"", "a string"));
        }
        known.extend(keep(document.text(item)).map_err(|reason| Wrong::at(document, item, reason))?);
    }
    if !declared.is_empty() {
        let node = map.get("cniVersion").copied().unwrap_or(versions);
        known.extend(keep(declared.clone()).map_err(|reason| Wrong::at(document, node, reason))?);
    }
    Ok(last_sorted(known).unwrap_or(declared))
}

/// The version with its numbers, or nothing when it is newer than libcni.
fn keep(text: String) -> Result<Option<(String, [i64; 3])>, String> {
    let numbers = parse(&text).ok_or_else(|| format!("{text:?} is not a CNI version"))?;
    Ok((numbers <= CURRENT).then_some((text, numbers)))
}

/// Up to three numbers with dots between; no text at all means 0.1.0.
fn parse(text: &str) -> Option<[i64; 3]> {
    if text.is_empty() {
        return Some([0, 1, 0]);
    }
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 3 {
        return None;
    }
    let mut numbers = [0; 3];
    for (number, part) in numbers.iter_mut().zip(parts) {
        *number = part.parse().ok()?;
    }
    Some(numbers)
}

/// The last one after libcni's sort, which for a dozen or fewer is an insertion sort. Its order calls two spellings of
/// one version (`1.0` and `1.0.0`) each smaller than the other, so how it sorts shows.
fn last_sorted(mut versions: Vec<(String, [i64; 3])>) -> Option<String> {
    for start in 1..versions.len() {
        for at in (1..=start).rev() {
            let (Some(left), Some(right)) = (versions.get(at - 1), versions.get(at)) else { break };
            let smaller = left.0 != right.0 && right.1.cmp(&left.1) != Ordering::Greater;
            if !smaller {
                break;
            }
            versions.swap(at - 1, at);
        }
    }
    versions.pop().map(|(text, _)| text)
}
