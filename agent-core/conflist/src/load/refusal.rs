//! Why a file is not taken.

use std::ffi::OsString;

/// A place in a file, both counted from 1, the column in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in bytes.
    pub column: usize,
}

impl Position {
    /// The place of the byte at `offset`.
    pub fn of(bytes: &[u8], offset: usize) -> Self {
        let before = bytes.get(..offset).unwrap_or(bytes);
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Self { line, column }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Who refuses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Both versions.
    Both,
    /// Only libcni 1.1.2 (containerd 1).
    Libcni1_1,
    /// Only libcni 1.3.1 (containerd 2).
    Libcni1_3,
    /// Neither: we could not read what they would read.
    Us,
}

impl std::fmt::Display for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Both => "refused by libcni 1.1 (containerd 1) and libcni 1.3 (containerd 2)",
            Self::Libcni1_1 => "refused by libcni 1.1 (containerd 1)",
            Self::Libcni1_3 => "refused by libcni 1.3 (containerd 2)",
            Self::Us => "cannot be judged",
        })
    }
}

/// Why a file is not taken: who refuses it, where, and why (I07).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file; for a drop-in its directory's name is in front.
    pub file: OsString,
    /// Who refuses it.
    pub by: By,
    /// Where, if the reason has a place.
    pub at: Option<Position>,
    /// Why.
    pub reason: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(at) = self.at {
            write!(f, ", {at}")?;
        }
        write!(f, ": {}: {}", self.by, self.reason)
    }
}

impl std::error::Error for Refusal {}
