//! Reads what the judgement needs: names, the chosen file, its drop-ins, the wanted state and the marker. Never writes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use aether_conflist::chain::{self, Inspection, Marker, Names, Snapshot};
use aether_conflist::derived;
use aether_conflist::load::{self, Content, DropIn, DropIns};
use aether_conflist::want::{Resolved, WantedFile};
use aether_domain::chain::{Healthy, State};
use aether_domain::ids::InstallId;
use aether_domain::text::sha256;
use aether_domain::{limits, paths};
use aether_durable::read::{self, ReadError};

use crate::binary::{Binary, Hashed};
use crate::config::Config;
use crate::memory::{self, Memory};
use crate::observation::SeenFile;

/// What one look found.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) state: State,
    pub(crate) file: Option<String>,
    pub(crate) choice: String,
    pub(crate) plugins: Vec<String>,
    pub(crate) files: Arc<[SeenFile]>,
    pub(crate) wanted: Option<Arc<[u8]>>,
    pub(crate) healthy: Option<Healthy>,
    pub(crate) plugin_sha256: Option<String>,
    pub(crate) binary: Binary,
    pub(crate) install_id: Option<InstallId>,
}

/// What is kept from one look to the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) memory: Memory,
    pub(crate) hashed: Hashed,
}

/// How many files are shown; of more than these only the first ones matter to anybody.
const FILES_MAX: usize = 16;

/// How often a look starts again because the file it chose was gone when it came to read it.
const ATTEMPTS: usize = 5;

/// Looks once. Blocks.
pub(crate) fn look(config: &Config, kept: &mut Kept, now: u64) -> Seen {
    let Kept { memory, hashed } = kept;
    let resolved = memory.resolve(&wanted(&config.conf_dir));
    let (snapshot, count) = snapshot(config, &resolved);
    let inspection = chain::inspect(&snapshot);
    memory.learn(&resolved, &inspection, now);
    let Inspection { state, file, list } = inspection;
    let plugins = match &list {
        Some(Ok(list)) => list.entries().iter().map(|entry| entry.plugin_type.clone()).collect(),
        _ => Vec::new(),
    };
    let choice = choice(&config.conf_dir, &snapshot.names, count);
    let file = file.map(|name| name.to_string_lossy().into_owned());
    Seen {
        files: files(&config.conf_dir, &snapshot),
        wanted: memory::put_back(&resolved, &state),
        healthy: memory.healthy(),
        binary: hashed.look(&config.plugin, resolved.plugin_sha256.as_deref()),
        plugin_sha256: resolved.plugin_sha256,
        state,
        file,
        choice,
        plugins,
        install_id: resolved.install_id,
    }
}

/// The files that a runtime looks at. Of the first the bytes are those that were judged.
fn files(conf_dir: &Path, snapshot: &Snapshot) -> Arc<[SeenFile]> {
    let Names::Listed(names) = &snapshot.names else { return Arc::from([]) };
    let mut files = Vec::new();
    for (index, name) in load::candidates(names).into_iter().take(FILES_MAX).enumerate() {
        let path = conf_dir.join(&name);
        let bytes = match (index, &snapshot.content) {
            (0, Content::Bytes(bytes)) => Some(bytes.clone()),
            (0, _) => None,
            _ => read::bounded(&path, limits::CONFLIST_MAX).ok().flatten(),
        };
        let (Some(bytes), Ok(meta)) = (bytes, std::fs::metadata(&path)) else { continue };
        let modified = meta.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        files.push(SeenFile {
            name: name.to_string_lossy().into_owned(),
            digest: sha256(&bytes),
            bytes: bytes.into(),
            uid: meta.uid(),
            modified: modified.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        });
    }
    files.into()
}

/// The choice of I04 and C05 in words.
fn choice(conf_dir: &Path, names: &Names, candidates: usize) -> String {
    let endings = load::ENDINGS.join(", ");
    match names {
        Names::Missing => format!("{} does not exist", conf_dir.display()),
        Names::Unread(why) => why.clone(),
        Names::Listed(_) if candidates == 0 => {
            format!("no file of {} ends with one of {endings}", conf_dir.display())
        }
        Names::Listed(_) => format!(
            "the first in byte order of the {candidates} file(s) of {} that end with one of {endings}; the runtime takes no \
             other, whatever it holds",
            conf_dir.display()
        ),
    }
}

fn snapshot(config: &Config, resolved: &Resolved) -> (Snapshot, usize) {
    let marker = marker(&config.state_dir.join(paths::UNINSTALLED));
    let mut attempt = 0;
    loop {
        attempt += 1;
        let names = names(&config.conf_dir);
        let candidates = match &names {
            Names::Listed(names) => load::candidates(names),
            Names::Missing | Names::Unread(_) => Vec::new(),
        };
        let content = match candidates.first() {
            None => Content::Bytes(Vec::new()),
            Some(first) => match content(&config.conf_dir.join(first)) {
                Some(content) => content,
                None if attempt < ATTEMPTS => continue,
                None => Content::Unread(format!(
                    "{} was gone each time it was read, although it was listed",
                    config.conf_dir.join(first).display()
                )),
            },
        };
        let drop_ins = match (candidates.first(), &content) {
            (Some(first), Content::Bytes(bytes)) => drop_ins(&config.conf_dir, first, bytes),
            _ => DropIns::none(),
        };
        let source = candidates.first().and_then(|first| derived::source_of(first)).and_then(|source| {
            let listed = matches!(&names, Names::Listed(names) if names.iter().any(|name| name == source));
            listed.then(|| self::content(&config.conf_dir.join(source))).flatten()
        });
        let snapshot = Snapshot { marker, want: resolved.want.clone(), names, content, drop_ins, source };
        return (snapshot, candidates.len());
    }
}

fn wanted(conf_dir: &Path) -> WantedFile {
    match read::bounded(&conf_dir.join(paths::WANTED), limits::STATE_FILE_MAX) {
        Ok(Some(bytes)) => WantedFile::Bytes(bytes),
        Ok(None) => WantedFile::Missing,
        Err(error) => WantedFile::Unread(explain(&error)),
    }
}

fn marker(path: &Path) -> Marker {
    // Its existence counts, whatever it is: a link that leads nowhere is there too.
    match std::fs::symlink_metadata(path) {
        Ok(_) => Marker::Present,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Marker::Absent
        }
        Err(error) => Marker::Unknown(format!("cannot look at {}: {error}", path.display())),
    }
}

fn names(conf_dir: &Path) -> Names {
    let unread = |error: &io::Error| Names::Unread(format!("cannot list {}: {error}", conf_dir.display()));
    match list(conf_dir) {
        Ok(names) => Names::Listed(names),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Names::Missing,
        Err(error) => unread(&error),
    }
}

/// Names of everything in the directory that is not a directory itself; a link is not one, wherever it leads.
fn list(directory: &Path) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => {}
            Ok(_) => names.push(entry.file_name()),
            // Gone since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

/// A file's content; `None` when it is gone altogether.
fn content(path: &Path) -> Option<Content> {
    match read::bounded(path, limits::CONFLIST_MAX) {
        Ok(Some(bytes)) => Some(Content::Bytes(bytes)),
        Ok(None) => match std::fs::read_link(path) {
            Ok(target) => Some(Content::Broken(format!(
                "{} is a link to {}, which is missing",
                path.display(),
                target.display()
            ))),
            Err(_) => None,
        },
        Err(error) => Some(if is_broken_for_all(&error, path) {
            Content::Broken(explain(&error))
        } else {
            Content::Unread(explain(&error))
        }),
    }
}

/// Whether the runtime cannot read it either: a link to a directory, to itself, or to a name too long.
fn is_broken_for_all(error: &ReadError, path: &Path) -> bool {
    use rustix::io::Errno;
    match error {
        ReadError::NotAFile { .. } => path.is_dir(),
        ReadError::Io { source, .. } => {
            let broken = [Errno::LOOP, Errno::NAMETOOLONG, Errno::ISDIR];
            source.raw_os_error().is_some_and(|code| broken.iter().any(|errno| errno.raw_os_error() == code))
        }
        ReadError::TooLarge { .. } => false,
    }
}

fn drop_ins(conf_dir: &Path, file_name: &OsStr, bytes: &[u8]) -> DropIns {
    let Some(directory) = load::drop_in_dir(conf_dir, file_name, bytes) else { return DropIns::none() };
    let cannot = |error: &io::Error| format!("cannot list {}: {error}", directory.display());
    match list(&directory) {
        Ok(names) => {
            let wanted = |name: &OsString| name.as_encoded_bytes().ends_with(load::DROP_IN_ENDING.as_bytes());
            let files = names.into_iter().filter(wanted).filter_map(|file_name| {
                content(&directory.join(&file_name)).map(|content| DropIn { file_name, content })
            });
            DropIns::Files(files.collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => DropIns::none(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => DropIns::Unread(cannot(&error)),
        Err(error) => DropIns::Broken(cannot(&error)),
    }
}

pub(crate) fn explain(error: &ReadError) -> String {
    match error {
        ReadError::Io { source, .. } => format!("{error}: {source}"),
        other => other.to_string(),
    }
}
