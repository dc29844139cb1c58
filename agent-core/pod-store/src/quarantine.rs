//! Putting a damaged file aside, so that it is neither lost nor read again (S02).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aether_domain::limits::QUARANTINE_KEPT;
use aether_durable::atomic::{self, WriteError};

/// Stands before the time, in milliseconds since 1970.
const MARK: &[u8] = b".corrupt-";
/// What is kept of a name, in bytes: a file name has at most 255.
const NAME_MAX: usize = 200;

/// When the file of this name was put aside; `None` for any other name.
pub(crate) fn put_aside_at(name: &OsStr) -> Option<u64> {
    let bytes = name.as_bytes();
    let at = bytes.windows(MARK.len()).rposition(|window| window == MARK)?;
    let digits = bytes.get(at + MARK.len()..)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Renames the file and returns its new name.
pub(crate) fn put_aside(directory: &Path, name: &OsStr) -> Result<OsString, WriteError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let mut millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let stem = name.as_bytes().get(..NAME_MAX).unwrap_or(name.as_bytes());
    loop {
        let mut aside = stem.to_vec();
        aside.extend_from_slice(MARK);
        aside.extend_from_slice(millis.to_string().as_bytes());
        let aside = OsString::from_vec(aside);
        let to = directory.join(&aside);
        // Two of one name within a millisecond: the earlier one is not to be lost.
        if to.symlink_metadata().is_ok() {
            millis = millis.saturating_add(1);
            continue;
        }
        atomic::rename(&directory.join(name), &to)?;
        return Ok(aside);
    }
}

/// Removes all but the newest [`QUARANTINE_KEPT`] of `names`, which were all put aside, and returns those that stay.
pub(crate) fn keep_newest(directory: &Path, mut names: Vec<OsString>) -> Result<Vec<OsString>, WriteError> {
    names.sort_by_key(|name| (std::cmp::Reverse(put_aside_at(name)), name.clone()));
    let old = names.split_off(names.len().min(QUARANTINE_KEPT));
    if !old.is_empty() {
        atomic::remove_all(directory, &old)?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s02_only_our_mark_with_a_time_is_a_quarantined_name() {
        assert_eq!(put_aside_at(OsStr::new("a+eth0.json.corrupt-17")), Some(17));
        assert_eq!(put_aside_at(OsStr::from_bytes(b"\xff.corrupt-9")), Some(9));
        for other in ["a+eth0.json", ".corrupt-", "a.corrupt-x", "a.corrupt-1.json"] {
            assert_eq!(put_aside_at(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn s02_the_newest_ten_are_kept_and_none_overwrites_another() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(250);
        let mut names = Vec::new();
        for round in 0..15 {
            let name = if round == 14 { long.as_str() } else { "f" };
            std::fs::write(dir.path().join(name), format!("{round}")).unwrap();
            names.push(put_aside(dir.path(), OsStr::new(name)).unwrap());
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 15);
        let kept = keep_newest(dir.path(), names).unwrap();
        let mut contents: Vec<u32> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap().parse().unwrap())
            .collect();
        contents.sort_unstable();
        assert_eq!(contents, (5..15).collect::<Vec<_>>());
        assert_eq!(kept.len(), 10);
    }
}
