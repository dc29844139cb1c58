//! What to do about the node's list (C01-C06, C10): pure.

use aether_conflist::load::{DropIns, Kind, List, kind_of};
use aether_conflist::own::OwnEntry;
use aether_conflist::{derived, edit};

use crate::fight::{Answer, Fight, Moment};

/// How often it is looked at without an event.
pub const LOOK_MS: u32 = 5000;

/// What the module sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The chain's state.
    pub state: String,
    /// How it differs.
    pub detail: String,
    /// The file that the runtime would load.
    pub file: Option<File>,
    /// The entry to put back.
    pub wanted: Option<Vec<u8>>,
    /// Whether the plugin's binary is another one or missing.
    pub plugin: Plugin,
    /// When it is seen.
    pub now: Moment,
}

/// The plugin's binary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Plugin {
    /// It is right, or it cannot be told.
    #[default]
    LeftAlone,
    /// It is another one or missing.
    ToRestore,
}

/// The file that the runtime would load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its owner.
    pub uid: u32,
    /// Milliseconds since 1970 of its last change.
    pub modified: u64,
}

/// What to do about the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is right, or nothing of ours is wanted, or it is not ours to repair.
    Leave,
    /// Not now: in so many milliseconds.
    Wait(u64),
    /// Put these bytes there.
    Replace {
        /// The list with our entry.
        bytes: Vec<u8>,
    },
    /// Have a list derived from this single plugin's configuration.
    Derive,
    /// It cannot be repaired: why.
    Cannot(String),
}

/// A fight that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// What is said.
    pub message: String,
}

/// What is remembered between two looks.
#[derive(Debug, Clone, Default)]
pub struct Reassert {
    fight: Fight,
    declared: bool,
    /// The plugin types of the list as it was put back.
    types_after_repair: Vec<String>,
}

impl Reassert {
    /// Decides about the list; a fight that begins with this look is declared once.
    pub fn look(&mut self, seen: &Seen) -> (Step, Option<Declared>) {
        // Only these two are ours to repair: a file that is empty, half-written or invalid is waited for (C04).
        if seen.state != "stripped" && seen.state != "drifted" {
            return (Step::Leave, None);
        }
        let (Some(file), Some(wanted)) = (&seen.file, &seen.wanted) else {
            return (Step::Cannot("neither a file nor an entry is known".to_owned()), None);
        };
        let answer = self.fight.stripped(seen.now, file.modified);
        let declared = self.declare(file);
        if let Answer::In(wait) = answer {
            return (Step::Wait(wait), declared);
        }
        (repair(file, wanted), declared)
    }

    /// The list was put back: asked for at one moment, and known to be done at the other.
    pub fn repaired(&mut self, asked: Moment, heard: Moment, file: &str, bytes: &[u8]) {
        self.fight.repaired(asked, heard);
        self.types_after_repair = types(file, bytes);
    }

    /// How many repairs in a row were undone.
    pub fn undone(&self) -> u32 {
        self.fight.undone()
    }

    fn declare(&mut self, file: &File) -> Option<Declared> {
        let before = std::mem::replace(&mut self.declared, self.fight.is_on());
        if before || !self.declared {
            return None;
        }
        let join = |types: &[String]| if types.is_empty() { "none".to_owned() } else { types.join(", ") };
        let message = format!(
            "somebody undoes each repair of {}: {} in a row, now answered ever later. The file belongs to uid {} and \
             was last changed at {} ms since 1970. Plugins after our repair: {}; after theirs: {}. Find the writer and \
             have it keep entries that are not its own",
            file.name,
            self.fight.undone(),
            file.uid,
            file.modified,
            join(&self.types_after_repair),
            join(&types(&file.name, &file.bytes)),
        );
        Some(Declared { message })
    }
}

fn repair(file: &File, wanted: &[u8]) -> Step {
    // A derived list is the host's to write, also where it has to go (I06).
    if kind_of(file.name.as_ref()) == Kind::Single || derived::is_derived(file.name.as_ref()) {
        return Step::Derive;
    }
    let wanted = match OwnEntry::parse(wanted) {
        Ok(wanted) => wanted,
        Err(error) => return Step::Cannot(format!("the wanted entry is none: {error}")),
    };
    let list = match List::load(&file.name, file.bytes.as_slice(), DropIns::none()) {
        Ok(list) => list,
        Err(refusal) => return Step::Cannot(refusal.to_string()),
    };
    match edit::put(&list, &wanted) {
        Ok(bytes) if bytes == file.bytes => Step::Leave,
        Ok(bytes) => Step::Replace { bytes },
        Err(error) => Step::Cannot(error.to_string()),
    }
}

fn types(file: &str, bytes: &[u8]) -> Vec<String> {
    List::load(file, bytes, DropIns::none())
        .map(|list| list.entries().iter().map(|entry| entry.plugin_type.clone()).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
