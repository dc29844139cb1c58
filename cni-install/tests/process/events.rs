//! What inotify says happened in the directories, in order.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// One queue for several directories, so that its order is the order of what happened.
pub(crate) struct Events {
    fd: OwnedFd,
    watched: Vec<(i32, String)>,
}

/// One event: the directory's label, what, and the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) dir: String,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

impl Events {
    pub(crate) fn of(dirs: &[(&str, &Path)]) -> Self {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
        let flags = WatchFlags::CREATE
            | WatchFlags::MODIFY
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE
            | WatchFlags::ATTRIB;
        let watched = dirs
            .iter()
            .map(|(label, dir)| (inotify::add_watch(&fd, *dir, flags).unwrap(), (*label).to_owned()))
            .collect();
        Self { fd, watched }
    }

    /// All events since the last call.
    pub(crate) fn drain(&self) -> Vec<Event> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let mut all = Vec::new();
        while let Ok(event) = reader.next() {
            let kinds = [
                (ReadFlags::CREATE, "create"),
                (ReadFlags::MODIFY, "modify"),
                (ReadFlags::MOVED_FROM, "moved-from"),
                (ReadFlags::MOVED_TO, "moved-to"),
                (ReadFlags::DELETE, "delete"),
                (ReadFlags::ATTRIB, "attrib"),
            ];
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let dir = self.watched.iter().find(|(wd, _)| *wd == event.wd()).unwrap().1.clone();
            for (_, kind) in kinds.iter().filter(|(flag, _)| event.events().contains(*flag)) {
                all.push(Event { dir: dir.clone(), kind, name: name.clone() });
            }
        }
        all
    }
}

/// The events of one directory, without those that change a temporary file's content or attributes.
pub(crate) fn moves(events: &[Event]) -> Vec<String> {
    events
        .iter()
        .filter(|event| {
            !(event.name.starts_with(".aether-tmp-") && matches!(event.kind, "modify" | "attrib"))
        })
        .map(|event| {
            let name = if event.name.starts_with(".aether-tmp-") { "TEMP" } else { &event.name };
            format!("{} {} {name}", event.dir, event.kind)
        })
        .collect()
}
