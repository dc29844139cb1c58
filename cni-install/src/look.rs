//! Looking at the node: everything that a decision needs, read once and changed by nothing.

use std::io::ErrorKind;
use std::path::Path;

use aether_conflist::chain::Names;
use aether_conflist::derived;
use aether_domain::format::{self, Parsed};
use aether_domain::text::error_chain;
use aether_domain::{limits, wanted};
use aether_durable::read::{self, ReadError};
use aether_list_keeper::{links, look};
use serde::de::DeserializeOwned;

use crate::config::Places;
use crate::found::{Kept, Net};

/// How many of the files that the runtime looks at are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first, which is the only one that the runtime loads.
    First,
    /// All, since an entry of ours may be in each.
    All,
}

/// Reads the directory of lists.
pub fn net(conf_dir: &Path, depth: Depth) -> Net {
    let names = match look::names(conf_dir) {
        Ok(names) => Names::Listed(names),
        Err(error) if error.kind() == ErrorKind::NotFound => Names::Missing,
        Err(error) => Names::Unread(error.to_string()),
    };
    let order = match &names {
        Names::Listed(names) => derived::foreign(names),
        Names::Missing | Names::Unread(_) => Vec::new(),
    };
    let choice = match &names {
        Names::Listed(names) => derived::choose(names),
        Names::Missing | Names::Unread(_) => derived::Choice::default(),
    };
    let read = match depth {
        Depth::First => 1,
        Depth::All => order.len(),
    };
    let count = order.len();
    let candidates: Vec<_> =
        order.into_iter().take(read).map(|name| look::candidate(conf_dir, name)).collect();
    let right = choice.first.as_deref().and_then(derived::name_for);
    let existing =
        right.filter(|right| choice.derived.contains(right)).map(|name| look::candidate(conf_dir, name));
    let link = candidates.first().and_then(|first| links::target(&conf_dir.join(&first.file_name)).err());
    Net { names, candidates, count, choice, existing, link }
}

/// Reads the wanted state.
pub fn wanted(places: &Places) -> Result<Option<Kept<wanted::Wanted>>, ReadError> {
    kept(&places.wanted())
}

/// Reads the marker. A marker that is there but no file of ours still says "uninstalled", as it does to the plugin.
pub fn marker(places: &Places) -> Result<Option<Kept<wanted::Marker>>, ReadError> {
    kept(&places.marker())
}

/// Seconds since 1970.
pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn kept<T: DeserializeOwned>(path: &Path) -> Result<Option<Kept<T>>, ReadError> {
    match read::bounded(path, limits::STATE_FILE_MAX) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => {
            let parsed = format::parse(&bytes, wanted::READER);
            Ok(Some(Kept { bytes, parsed }))
        }
        Err(error @ (ReadError::NotAFile { .. } | ReadError::TooLarge { .. })) => {
            Ok(Some(Kept { bytes: Vec::new(), parsed: Parsed::Damaged(error_chain(&error)) }))
        }
        Err(error @ ReadError::Io { .. }) => Err(error),
    }
}
