//! What a look at the node found: the input of every decision.

use aether_conflist::chain::Names;
use aether_conflist::derived::Choice;
use aether_domain::format::Parsed;
use aether_domain::wanted::{Marker, Wanted};
use aether_list_keeper::links::LinkError;
pub use aether_list_keeper::look::Candidate;
pub use aether_list_keeper::plugin::Plugin;

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

/// The directory of lists. What the runtime looks at is told without the lists that are derived here (I06).
#[derive(Debug, Clone)]
pub struct Net {
    /// Its names, without directories.
    pub names: Names,
    /// What the runtime looks at, in its order. For an install only the first is read.
    pub candidates: Vec<Candidate>,
    /// How many files the runtime looks at.
    pub count: usize,
    /// The derived lists, and what the runtime loads with and without them.
    pub choice: Choice,
    /// The list that is derived from the first candidate, where there is one.
    pub existing: Option<Candidate>,
    /// Why the first candidate is not edited through its link.
    pub link: Option<LinkError>,
}
