//! Reading the directory of lists: what the runtime would find there. Changes nothing.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use aether_conflist::load::{self, Content, DropIn, DropIns};
use aether_conflist::want::WantedFile;
use aether_domain::text::error_chain;
use aether_domain::{limits, paths};
use aether_durable::read::{self, ReadError};
use rustix::io::Errno;

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

/// The names of everything in `dir` that is not a directory. A link is none, wherever it points.
pub fn names(dir: &Path) -> io::Result<Vec<OsString>> {
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

/// Reads one file of the directory, with its drop-ins.
pub fn candidate(conf_dir: &Path, file_name: OsString) -> Candidate {
    let path = conf_dir.join(&file_name);
    let content = content(&path);
    let drop_ins = match &content {
        Content::Bytes(bytes) => drop_ins(conf_dir, &file_name, bytes),
        Content::Broken(_) | Content::Unread(_) => DropIns::none(),
    };
    Candidate { content, drop_ins, link: std::fs::read_link(&path).ok(), file_name }
}

/// Reads the file of the wanted state.
pub fn wanted(conf_dir: &Path) -> WantedFile {
    match read::bounded(&conf_dir.join(paths::WANTED), limits::STATE_FILE_MAX) {
        Ok(Some(bytes)) => WantedFile::Bytes(bytes),
        Ok(None) => WantedFile::Missing,
        Err(error) => WantedFile::Unread(error_chain(&error)),
    }
}

fn drop_ins(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> DropIns {
    let Some(dir) = load::drop_in_dir(conf_dir, file_name, bytes) else { return DropIns::none() };
    let why = |error: &io::Error| format!("{}: {error}", dir.display());
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

/// What a file holds.
pub fn content(path: &Path) -> Content {
    match read::bounded(path, limits::CONFLIST_MAX) {
        Ok(Some(bytes)) => Content::Bytes(bytes),
        Ok(None) => Content::Broken(match std::fs::read_link(path) {
            Ok(target) => format!(
                "it is a symbolic link to {}, which does not exist here; where it exists on the node, mount its directory \
                 as well",
                target.display()
            ),
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
