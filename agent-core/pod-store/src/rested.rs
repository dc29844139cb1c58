//! Whether a folder is as it was when it was read last, told by one `stat`: an owner looks four times a second.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For how long a folder must not have changed before its time of change tells a later change: file systems count it in
/// ticks of the kernel, of 10 ms at most.
const SETTLED: Duration = Duration::from_millis(100);

/// When a folder changed last, and which folder it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    folder: (u64, u64),
    changed: Duration,
}

impl Stamp {
    /// Of the folder at `path`; none where it cannot be told.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        let (seconds, nanos) = (u64::try_from(meta.mtime()).ok()?, u32::try_from(meta.mtime_nsec()).ok()?);
        Some(Self { folder: (meta.dev(), meta.ino()), changed: Duration::new(seconds, nanos) })
    }

    /// Whether whatever comes after `now` changes the stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(UNIX_EPOCH) else { return false };
        // A clock that was set back says nothing.
        now.checked_sub(self.changed).is_some_and(|since| since >= SETTLED)
    }
}

/// What was read last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rested(Option<Stamp>);

impl Rested {
    /// Whether the folder with this stamp has been read already.
    pub(crate) fn holds(self, stamp: Option<Stamp>) -> bool {
        stamp.is_some() && self.0 == stamp
    }

    /// What is known after all of the folder was read, which had this stamp before.
    pub(crate) fn after(stamp: Option<Stamp>, now: SystemTime) -> Self {
        Self(stamp.filter(|stamp| stamp.is_settled(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k07_a_folder_counts_as_read_only_once_a_later_change_would_show() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = Stamp::of(dir.path());
        let changed = stamp.unwrap().changed;
        let at = |since: Duration| UNIX_EPOCH + changed + since;
        assert!(!Rested::default().holds(stamp));
        assert!(!Rested::after(stamp, at(Duration::from_millis(99))).holds(stamp));
        assert!(
            !Rested::after(stamp, UNIX_EPOCH + changed - Duration::from_secs(1)).holds(stamp),
            "set back"
        );
        let rested = Rested::after(stamp, at(SETTLED));
        assert!(rested.holds(stamp));
        // The tick of the clock passes before the next change.
        let mut now = stamp;
        while now == stamp {
            std::fs::write(dir.path().join("tombstone"), "").unwrap();
            std::fs::remove_file(dir.path().join("tombstone")).unwrap();
            now = Stamp::of(dir.path());
        }
        assert!(!rested.holds(now));
        assert!(!Rested::default().holds(None) && !Rested::after(None, SystemTime::now()).holds(None));
    }

    #[test]
    fn k07_another_folder_of_that_name_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deletes");
        std::fs::create_dir(&path).unwrap();
        let stamp = Stamp::of(&path).unwrap();
        let rested = Rested(Some(stamp));
        std::fs::create_dir(dir.path().join("other")).unwrap();
        std::fs::remove_dir(&path).unwrap();
        assert!(!rested.holds(Stamp::of(&path)));
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert!(!rested.holds(Stamp::of(&path)));
    }
}
