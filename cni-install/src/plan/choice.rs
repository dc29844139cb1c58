//! The chosen file and the reason, which is logged (I04).

use std::ffi::OsString;
use std::path::PathBuf;

/// The file that the runtime would load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The file.
    pub path: PathBuf,
    /// How many the runtime looks at.
    pub count: usize,
    /// The list derived from it, which the runtime loads in its place.
    pub derived: Option<OsString>,
}

impl Choice {
    /// This file, the first of `count`.
    pub fn of(path: PathBuf, count: usize) -> Self {
        Self { path, count, derived: None }
    }

    /// The same file, from which the list `name` is derived.
    #[must_use]
    pub fn derived(self, name: OsString) -> Self {
        Self { derived: Some(name), ..self }
    }
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(derived) = &self.derived {
            write!(f, "{}, derived from ", self.path.with_file_name(derived).display())?;
        }
        let path = self.path.display();
        match self.count {
            1 => write!(f, "{path} (the only file that the runtime looks at)"),
            count => {
                write!(f, "{path} (the first in byte order of the {count} files that the runtime looks at)")
            }
        }
    }
}
