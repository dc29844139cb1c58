//! Looking at the node: everything that a decision needs, read once and changed by nothing.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::Path;

use aether_conflist::chain::Names;
use aether_conflist::load::{self, Content, DropIn, DropIns};
use aether_domain::format::{self, Parsed};
use aether_domain::{limits, wanted};
use aether_durable::read::{self, ReadError};
use rustix::io::Errno;
use serde::de::DeserializeOwned;

use crate::config::Places;
use crate::found::{Candidate, Kept, Net};
use crate::log;

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
    let names = match names(conf_dir) {
        Ok(names) => Names::Listed(names),
        Err(error) if error.kind() == ErrorKind::NotFound => Names::Missing,
        Err(error) => Names::Unread(error.to_string()),
    };
    let order = match &names {
        Names::Listed(names) => load::candidates(names),
        Names::Missing | Names::Unread(_) => Vec::new(),
    };
    let read = match depth {
        Depth::First => 1,
        Depth::All => order.len(),
    };
    let count = order.len();
    let candidates = order.into_iter().take(read).map(|name| candidate(conf_dir, name)).collect();
    Net { names, candidates, count }
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
            Ok(Some(Kept { bytes: Vec::new(), parsed: Parsed::Damaged(log::chain(&error)) }))
        }
        Err(error @ ReadError::Io { .. }) => Err(error),
    }
}

/// The names of everything in `dir` that is not a directory. A link is none, wherever it points.
fn names(dir: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        match entry.and_then(|entry| Ok((entry.file_type()?, entry.file_name()))) {
            Ok((kind, name)) if !kind.is_dir() => names.push(name),
            Ok(_) => {}
            // Gone since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

fn candidate(conf_dir: &Path, file_name: OsString) -> Candidate {
    let path = conf_dir.join(&file_name);
    let content = content(&path);
    let drop_ins = match &content {
        Content::Bytes(bytes) => drop_ins(conf_dir, &file_name, bytes),
        Content::Broken(_) | Content::Unread(_) => DropIns::none(),
    };
    Candidate { content, drop_ins, link: std::fs::read_link(&path).ok(), file_name }
}

fn drop_ins(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> DropIns {
    let Some(dir) = load::drop_in_dir(conf_dir, file_name, bytes) else { return DropIns::none() };
    let why = |error: &std::io::Error| format!("{}: {error}", dir.display());
    match names(&dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => DropIns::none(),
        Err(error) if error.kind() == ErrorKind::NotADirectory => DropIns::Broken(why(&error)),
        Err(error) => DropIns::Unread(why(&error)),
        Ok(names) => DropIns::Files(
            names
                .into_iter()
                .filter(|name| name.as_encoded_bytes().ends_with(load::DROP_IN_ENDING.as_bytes()))
                .map(|file_name| DropIn { content: content(&dir.join(&file_name)), file_name })
                .collect(),
        ),
    }
}

fn content(path: &Path) -> Content {
    match read::bounded(path, limits::CONFLIST_MAX) {
        Ok(Some(bytes)) => Content::Bytes(bytes),
        Ok(None) => Content::Broken(match std::fs::read_link(path) {
            Ok(target) => format!("it is a symbolic link to {}, which does not exist", target.display()),
            Err(_) => "it is gone again".to_owned(),
        }),
        Err(ReadError::NotAFile { .. }) => Content::Broken("it is no regular file".to_owned()),
        Err(error @ ReadError::TooLarge { .. }) => Content::Unread(error.to_string()),
        Err(ReadError::Io { source, .. }) => {
            let code = source.raw_os_error();
            if code == Some(Errno::LOOP.raw_os_error()) || code == Some(Errno::NAMETOOLONG.raw_os_error()) {
                Content::Broken(source.to_string())
            } else {
                Content::Unread(source.to_string())
            }
        }
    }
}
