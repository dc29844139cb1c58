//! Whether a file or folder is as it was when it was read last, told by one `stat`: an owner looks for tombstones four times
//! a second, and whoever takes over reads only the records that are not as it knows them (T05).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For how long a file must not have changed before its time of change tells a later change: file systems count it in
/// ticks of the kernel, of 10 ms at most.
const SETTLED: Duration = Duration::from_millis(100);

/// When a file or folder changed last, and which one it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    id: (u64, u64),
    size: u64,
    /// By the kernel alone: no program can set it.
    changed: Duration,
}

impl Stamp {
    /// Of what is at `path`; none where it cannot be told.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::metadata(path).ok()?;
        let (seconds, nanos) = (u64::try_from(meta.ctime()).ok()?, u32::try_from(meta.ctime_nsec()).ok()?);
        let changed = Duration::new(seconds, nanos);
        Some(Self { id: (meta.dev(), meta.ino()), size: meta.size(), changed })
    }

    /// Whether whatever comes after `now` changes the stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(UNIX_EPOCH) else { return false };
        // A clock that was set back says nothing.
        now.checked_sub(self.changed).is_some_and(|since| since >= SETTLED)
    }
}

/// A folder that was read.
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

/// The files of a folder as they were read, with what they hold.
#[derive(Debug)]
pub(crate) struct Known<T>(BTreeMap<OsString, (Stamp, Arc<T>)>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Known<T> {
    /// What the file of this name holds, if it is the one that was read.
    pub(crate) fn take(&mut self, name: &OsStr, stamp: Option<Stamp>) -> Option<Arc<T>> {
        let (known, value) = self.0.remove(name)?;
        (Some(known) == stamp).then_some(value)
    }

    /// Whether the file of this name is the one that was read.
    pub(crate) fn holds(&self, name: &OsStr, stamp: Option<Stamp>) -> bool {
        self.0.get(name).is_some_and(|(known, _)| Some(*known) == stamp)
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps what was read from a file that had this stamp before.
    pub(crate) fn keep(&mut self, name: OsString, stamp: Option<Stamp>, now: SystemTime, value: Arc<T>) {
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled(now)) {
            self.0.insert(name, (stamp, value));
        }
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

    #[test]
    fn t05_a_file_that_was_changed_replaced_or_read_too_soon_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "1").unwrap();
        let stamp = Stamp::of(&path);
        let later = UNIX_EPOCH + stamp.unwrap().changed + SETTLED;
        let known = |now| {
            let mut known = Known::default();
            known.keep("a".into(), stamp, now, Arc::new(1));
            known
        };
        assert_eq!(known(later).take(OsStr::new("a"), stamp), Some(Arc::new(1)));
        assert_eq!(known(later).take(OsStr::new("b"), stamp), None);
        assert_eq!(known(later).take(OsStr::new("a"), None), None);
        assert_eq!(known(later - Duration::from_millis(1)).take(OsStr::new("a"), stamp), None);
        // One that looks the same to everything but the kernel.
        let other = dir.path().join("b");
        std::fs::write(&other, "2").unwrap();
        let times = std::fs::FileTimes::new().set_modified(path.metadata().unwrap().modified().unwrap());
        std::fs::File::options().write(true).open(&other).unwrap().set_times(times).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(known(later).take(OsStr::new("a"), Stamp::of(&path)), None);
    }
}
