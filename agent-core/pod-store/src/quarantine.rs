//! Putting a damaged file aside, so that it is neither lost nor read again (S02).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aether_domain::limits::QUARANTINE_KEPT;
use aether_domain::pods::{Trouble, Unusable};
use aether_domain::text::error_chain;
use aether_durable::atomic::{self, WriteError};

use crate::folder::Folder;
use crate::store::Inner;

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

/// Renames the file and returns its new name, whose time is later than `last`: the order in which files were put aside
/// holds also within a millisecond, and when the clock was set back.
pub(crate) fn put_aside(directory: &Path, name: &OsStr, last: Option<u64>) -> Result<OsString, WriteError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let now = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    let mut millis = last.map_or(now, |last| now.max(last.saturating_add(1)));
    let stem = name.as_bytes().get(..NAME_MAX).unwrap_or(name.as_bytes());
    loop {
        let mut aside = stem.to_vec();
        aside.extend_from_slice(MARK);
        aside.extend_from_slice(millis.to_string().as_bytes());
        let aside = OsString::from_vec(aside);
        let to = directory.join(&aside);
        // One that appeared since the directory was read is not to be lost.
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

/// Whether a read may also tidy up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    /// A standby's: it only looks (T03).
    Off,
    /// The owner's.
    On,
}

impl Inner {
    /// Says of each file that cannot be used what it is, and as the owner puts damaged ones aside.
    pub(crate) fn set_aside<T>(
        &self,
        directory: &Path,
        folder: &mut Folder<T>,
        hands: Hands,
    ) -> Vec<Unusable> {
        let shown = |name: &OsStr| directory.join(name).to_string_lossy().into_owned();
        let mut unusable = Vec::new();
        for (name, format) in &folder.newer {
            let reason = format!(
                "it is of format {}, for readers from {} on; left in place for the newer agent that wrote it",
                format.format, format.oldest_reader
            );
            unusable.push(Unusable { file: shown(name), kind: Trouble::Newer, reason });
        }
        for (name, why) in &folder.foreign {
            let reason = format!("{why}; left in place");
            unusable.push(Unusable { file: shown(name), kind: Trouble::Foreign, reason });
        }
        let mut last = folder.quarantined.iter().filter_map(|name| put_aside_at(name)).max();
        for (name, why) in &folder.damaged {
            if hands == Hands::Off {
                let reason = format!("it is damaged: {why}");
                unusable.push(Unusable { file: shown(name), kind: Trouble::Damaged, reason });
                continue;
            }
            match put_aside(directory, name, last) {
                Ok(aside) => {
                    last = put_aside_at(&aside);
                    self.counters.quarantined.fetch_add(1, Ordering::Relaxed);
                    tracing::error!(
                        file = %shown(name), aside = %aside.to_string_lossy(), why,
                        "a damaged file was put aside; look at it, and remove it when it is of no more use",
                    );
                    folder.quarantined.push(aside);
                }
                Err(error) => {
                    let reason =
                        format!("it is damaged: {why}; it could not be put aside: {}", error_chain(&error));
                    unusable.push(Unusable { file: shown(name), kind: Trouble::Damaged, reason });
                }
            }
        }
        let mut quarantined = std::mem::take(&mut folder.quarantined);
        if hands == Hands::On {
            match keep_newest(directory, quarantined.clone()) {
                Ok(kept) => quarantined = kept,
                Err(error) => tracing::warn!(error = %error_chain(&error), "old damaged files stay"),
            }
        }
        unusable.extend(quarantined.iter().map(|name| Unusable {
            file: shown(name),
            kind: Trouble::Damaged,
            reason: "it was damaged and is put aside".to_owned(),
        }));
        unusable.sort();
        unusable
    }
}

/// Logs what cannot be used once, not at every look.
pub(crate) fn report_new(before: &[Unusable], now: &[Unusable]) {
    for Unusable { file, reason, .. } in now.iter().filter(|unusable| !before.contains(unusable)) {
        tracing::warn!(file, reason, "a file in the state directory cannot be used");
    }
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
        let mut last = None;
        for round in 0..15 {
            let name = if round % 3 == 2 { long.as_str() } else { "f" };
            std::fs::write(dir.path().join(name), format!("{round}")).unwrap();
            let aside = put_aside(dir.path(), OsStr::new(name), last).unwrap();
            last = put_aside_at(&aside);
            names.push(aside);
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

    #[test]
    fn s02_one_put_aside_after_the_clock_was_set_back_is_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let future = u64::MAX / 2;
        let aside = put_aside(dir.path(), OsStr::new("f"), Some(future)).unwrap();
        assert_eq!(put_aside_at(&aside), Some(future + 1));
    }

    #[test]
    fn s02_of_one_name_and_time_none_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let last = u64::MAX / 2;
        for _ in 0..3 {
            std::fs::write(dir.path().join("f"), "").unwrap();
            put_aside(dir.path(), OsStr::new("f"), Some(last)).unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
