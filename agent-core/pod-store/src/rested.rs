//! What was read already and has not changed since: an owner looks for tombstones twice a second, and whoever takes over reads
//! only the records that are not as it knows them (T05).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use aether_durable::mark::{Look, Mark};

/// A folder that was read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rested(Option<Mark>);

impl Rested {
    /// Whether the folder has been read already as it is.
    pub(crate) fn holds(self, look: Option<Look>) -> bool {
        look.is_some_and(|look| self.0 == Some(look.mark()))
    }

    /// What is known after all of the folder was read, after this look.
    pub(crate) fn after(look: Option<Look>) -> Self {
        Self(look.and_then(Look::lasting))
    }
}

/// The files of a folder as they were read, with what they hold.
#[derive(Debug)]
pub(crate) struct Known<T>(BTreeMap<OsString, (Mark, Arc<T>)>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Known<T> {
    /// What the file of this name holds, if it is the one that was read.
    pub(crate) fn take(&mut self, name: &OsStr, look: Option<Look>) -> Option<Arc<T>> {
        let (known, value) = self.0.remove(name)?;
        (look?.mark() == known).then_some(value)
    }

    /// Whether the file of this name is the one that was read.
    pub(crate) fn holds(&self, name: &OsStr, look: Option<Look>) -> bool {
        self.0.get(name).is_some_and(|(known, _)| look.is_some_and(|look| look.mark() == *known))
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Keeps what was read from a file after this look.
    pub(crate) fn keep(&mut self, name: OsString, look: Option<Look>, value: Arc<T>) {
        if let Some(mark) = look.and_then(Look::lasting) {
            self.0.insert(name, (mark, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// A look at a time by which the last change is old.
    fn later(path: &Path) -> Option<Look> {
        Look::new(&std::fs::metadata(path).unwrap(), SystemTime::now() + Duration::from_secs(1))
    }

    #[test]
    fn k07_a_folder_counts_as_read_only_if_a_later_change_would_show() {
        let dir = tempfile::tempdir().unwrap();
        let soon = Look::at(dir.path());
        assert!(!Rested::default().holds(soon) && !Rested::after(soon).holds(soon));
        assert!(Rested::after(later(dir.path())).holds(soon));
        assert!(!Rested::default().holds(None) && !Rested::after(None).holds(None));
    }

    #[test]
    fn t05_a_file_that_was_changed_or_read_too_soon_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "1").unwrap();
        let (soon, later) = (Look::at(&path), later(&path));
        let known = |look| {
            let mut known = Known::default();
            known.keep("a".into(), look, Arc::new(1));
            known
        };
        assert_eq!(known(later).take(OsStr::new("a"), soon), Some(Arc::new(1)));
        assert_eq!(known(later).take(OsStr::new("b"), soon), None);
        assert_eq!(known(later).take(OsStr::new("a"), None), None);
        assert_eq!(known(soon).take(OsStr::new("a"), soon), None);
        std::fs::write(&path, "12").unwrap();
        assert_eq!(known(later).take(OsStr::new("a"), Look::at(&path)), None);
    }
}
