//! Which entry is wanted: the wanted state's, or while that cannot be had the one last observed healthy.

use aether_conflist::chain::{Inspection, Want};
use aether_conflist::own::OwnEntry;
use aether_domain::chain::State;
use aether_domain::format::{self, Parsed};
use aether_domain::ids::InstallId;
use aether_domain::paths;
use aether_domain::wanted::{self, Wanted};

/// The file of the wanted state, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WantedFile {
    Bytes(Vec<u8>),
    Missing,
    /// It could not be read: why.
    Unread(String),
}

/// What is wanted now, and by which install.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) want: Want,
    pub(crate) install_id: Option<InstallId>,
}

/// What was observed healthy last. It lives as long as the process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    last: Option<(OwnEntry, Option<InstallId>)>,
}

impl Memory {
    /// The wanted entry by this file.
    pub(crate) fn resolve(&self, file: &WantedFile) -> Resolved {
        let why = match file {
            WantedFile::Missing => format!("{} is missing", paths::WANTED),
            WantedFile::Unread(why) => why.clone(),
            WantedFile::Bytes(bytes) => match format::parse::<Wanted>(bytes, wanted::READER) {
                Parsed::Newer(_) => return Resolved { want: Want::Newer, install_id: None },
                Parsed::Damaged(how) => format!("{} is damaged: {how}", paths::WANTED),
                Parsed::Good(wanted) => match OwnEntry::parse(wanted.entry.to_string().as_bytes()) {
                    Ok(entry) => {
                        return Resolved { want: Want::Entry(entry), install_id: Some(wanted.install_id) };
                    }
                    Err(error) => format!("{} is damaged: {error}", paths::WANTED),
                },
            },
        };
        match &self.last {
            Some((entry, id)) => Resolved { want: Want::Entry(entry.clone()), install_id: id.clone() },
            None => Resolved {
                want: Want::Nothing(format!(
                    "{why}, and no entry of ours was observed healthy since this agent started"
                )),
                install_id: None,
            },
        }
    }

    /// Remembers what `inspection` found healthy; an uninstall ends the memory.
    pub(crate) fn learn(&mut self, resolved: &Resolved, inspection: &Inspection) {
        match (&inspection.state, &resolved.want) {
            (State::Uninstalled, _) => self.last = None,
            (State::Chained, Want::Entry(entry)) => {
                self.last = Some((entry.clone(), resolved.install_id.clone()));
            }
            (State::Chained, Want::Newer) => {
                let Some(Ok(list)) = &inspection.list else { return };
                let seen = list.ours().next().and_then(|entry| OwnEntry::parse(list.text(entry)).ok());
                if let Some(entry) = seen {
                    self.last = Some((entry, None));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
