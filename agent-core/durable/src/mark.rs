//! Whether a file or folder is as it was when it was read last, told by one `stat`.
//!
//! A file system counts times in ticks of the kernel: of two changes within one tick the second leaves no trace. So a mark
//! says that nothing has changed only if the tick was over when the mark was taken ([`Look::lasting`]).

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// For how long a file must not have changed before its time of change tells a later change. A tick is 10 ms at most.
const SETTLED: Duration = Duration::from_millis(100);

/// Which file or folder it is, and when it changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    id: (u64, u64),
    size: u64,
    /// By the kernel alone: no program can set it.
    changed: Duration,
}

/// A mark, and a time before which it was not yet taken.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    mark: Mark,
    from: SystemTime,
}

impl Look {
    /// Of what is at `path`, where a link leads; none where it cannot be told. To be taken before the file is read: whatever
    /// changes the file later changes its mark.
    pub fn at(path: &Path) -> Option<Self> {
        // Before the `stat`: after it, a change could come in between that has the mark's own tick.
        let from = SystemTime::now();
        Self::new(&std::fs::metadata(path).ok()?, from)
    }

    /// The same of a file that was looked at after `from`.
    pub fn new(meta: &Metadata, from: SystemTime) -> Option<Self> {
        let (seconds, nanos) = (u64::try_from(meta.ctime()).ok()?, u32::try_from(meta.ctime_nsec()).ok()?);
        let changed = Duration::new(seconds, nanos);
        let mark = Mark { id: (meta.dev(), meta.ino()), size: meta.size(), changed };
        Some(Self { mark, from })
    }

    /// The mark, to be compared with another.
    pub fn mark(self) -> Mark {
        self.mark
    }

    /// The mark, if every later change makes another one: to be kept with what is read now.
    pub fn lasting(self) -> Option<Mark> {
        let from = self.from.duration_since(UNIX_EPOCH).ok()?;
        // A clock that was set back says nothing.
        let since = from.checked_sub(self.mark.changed)?;
        (since >= SETTLED).then_some(self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(path: &Path, since: Duration) -> Look {
        let meta = std::fs::metadata(path).unwrap();
        let changed = Duration::new(meta.ctime().try_into().unwrap(), meta.ctime_nsec().try_into().unwrap());
        Look::new(&meta, UNIX_EPOCH + changed + since).unwrap()
    }

    #[test]
    fn k07_a_mark_lasts_only_once_a_later_change_would_show() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(look(dir.path(), Duration::from_millis(99)).lasting(), None);
        let settled = look(dir.path(), SETTLED);
        assert_eq!(settled.lasting(), Some(settled.mark()));
        let set_back = Look { from: UNIX_EPOCH + settled.mark.changed - Duration::from_secs(1), ..settled };
        assert_eq!(set_back.lasting(), None);
        // The tick passes before the next change that shows.
        let mut now = settled.mark();
        while now == settled.mark() {
            std::fs::write(dir.path().join("tombstone"), "").unwrap();
            std::fs::remove_file(dir.path().join("tombstone")).unwrap();
            now = Look::at(dir.path()).unwrap().mark();
        }
        assert!(Look::at(&dir.path().join("none")).is_none());
    }

    #[test]
    fn k07_another_folder_of_that_name_has_another_mark() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deletes");
        std::fs::create_dir(&path).unwrap();
        let mark = Look::at(&path).unwrap().mark();
        std::fs::create_dir(dir.path().join("other")).unwrap();
        std::fs::remove_dir(&path).unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert_ne!(Look::at(&path).unwrap().mark(), mark);
    }

    #[test]
    fn t05_a_file_that_looks_the_same_to_everything_but_the_kernel_has_another_mark() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&path, "1").unwrap();
        let mark = Look::at(&path).unwrap().mark();
        std::fs::write(&other, "2").unwrap();
        let times = std::fs::FileTimes::new().set_modified(path.metadata().unwrap().modified().unwrap());
        std::fs::File::options().write(true).open(&other).unwrap().set_times(times).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_ne!(Look::at(&path).unwrap().mark(), mark);
    }
}
