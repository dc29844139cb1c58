//! What a look at the node found: the input of every decision.

use std::ffi::OsString;
use std::path::PathBuf;

use aether_conflist::chain::Names;
use aether_conflist::load::{Content, DropIns};
use aether_domain::format::Parsed;
use aether_domain::wanted::{Marker, Wanted};

/// The node, as far as an install is concerned.
#[derive(Debug, Clone)]
pub struct Found {
    /// The directory of lists.
    pub net: Net,
    /// The plugin's directory and binary.
    pub plugin: Plugin,
    /// The wanted state.
    pub wanted: Option<Kept<Wanted>>,
    /// The marker of an uninstall.
    pub marker: Option<Kept<Marker>>,
    /// Seconds since 1970.
    pub now: u64,
}

/// One of our files: its bytes and what they say.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// What they say.
    pub parsed: Parsed<T>,
}

impl<T> Kept<T> {
    /// The content, if it is readable.
    pub fn good(&self) -> Option<&T> {
        match &self.parsed {
            Parsed::Good(content) => Some(content),
            Parsed::Newer(_) | Parsed::Damaged(_) => None,
        }
    }
}

/// The directory of lists.
#[derive(Debug, Clone)]
pub struct Net {
    /// Its names, without directories.
    pub names: Names,
    /// What the runtime looks at, in its order. For an install only the first is read.
    pub candidates: Vec<Candidate>,
    /// How many files the runtime looks at.
    pub count: usize,
}

/// A file that the runtime looks at.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name.
    pub file_name: OsString,
    /// What it holds.
    pub content: Content,
    /// What libcni 1.3 would append to it.
    pub drop_ins: DropIns,
    /// Where it points, if it is a symbolic link.
    pub link: Option<PathBuf>,
}

/// The plugin as it lies on the node, beside the one to install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// The directory of plugins does not exist.
    NoDirectory,
    /// There is no binary.
    Missing,
    /// It is the one to install, and can be run.
    Identical,
    /// It is another one, or has another mode.
    Different,
}
