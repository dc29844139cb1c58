//! The chain's state, from a look at the directory (C01).

use std::ffi::{OsStr, OsString};

use aether_domain::chain::State;

use crate::derived;
use crate::edit;
use crate::load::{self, By, Content, DropIns, Kind, List, Refusal};
use crate::own::OwnEntry;

/// The marker of an uninstall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// It does not exist.
    Absent,
    /// It exists.
    Present,
    /// It could not be told: why.
    Unknown(String),
}

/// The entry that is wanted.
#[derive(Debug, Clone)]
pub enum Want {
    /// This one: the wanted state's, or, while that file is damaged or missing without an uninstall, the one last
    /// observed healthy.
    Entry(OwnEntry),
    /// A newer program's wanted state, which we cannot read: any single entry of ours is right.
    Newer,
    /// There is neither a wanted nor an observed entry: why.
    Nothing(String),
}

/// The directory's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// Everything in it that is not a directory.
    Listed(Vec<OsString>),
    /// There is no such directory.
    Missing,
    /// It could not be listed: why.
    Unread(String),
}

/// What a look at the node found. `content` and `drop_ins` are those of the first of [`crate::load::candidates`];
/// where there is none they do not matter.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The marker of an uninstall.
    pub marker: Marker,
    /// The entry that is wanted.
    pub want: Want,
    /// The directory's names.
    pub names: Names,
    /// The content of the file that the runtime would load.
    pub content: Content,
    /// What lies in the directory that [`crate::load::drop_in_dir`] names for it.
    pub drop_ins: DropIns,
    /// Where that file is a derived list, the content of the configuration that it is derived from; `None` where there
    /// is no such file, and for any other list.
    pub source: Option<Content>,
}

/// The state and what it was told from.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The state.
    pub state: State,
    /// The file that the runtime would load, if there is any.
    pub file: Option<OsString>,
    /// What it holds, or why it is not taken; `None` where there is no file or it could not be read.
    pub list: Option<Result<List, Refusal>>,
}

/// The chain's state.
///
/// ```
/// use aether_conflist::{chain::{self, *}, load::{Content, DropIns}, own::OwnEntry};
/// use aether_domain::chain::State;
///
/// let snapshot = Snapshot {
///     marker: Marker::Absent,
///     want: Want::Entry(OwnEntry::parse(br#"{"name":"aether","type":"aether-cni"}"#)?),
///     names: Names::Listed(vec!["10-flannel.conflist".into(), "README".into()]),
///     content: Content::Bytes(br#"{"name":"cbr0","plugins":[{"type":"flannel"}]}"#.to_vec()),
///     drop_ins: DropIns::none(),
///     source: None,
/// };
/// assert_eq!(chain::state(&snapshot), State::Stripped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn state(snapshot: &Snapshot) -> State {
    inspect(snapshot).state
}

/// The chain's state, the file, and what it holds. The file and the list are told whatever the state is.
///
/// A single plugin's configuration from which a list can be derived counts as stripped, and a derived list that is not
/// what it should be as drifted or stripped (I06): both are put right by deriving.
pub fn inspect(snapshot: &Snapshot) -> Inspection {
    let file = match &snapshot.names {
        Names::Listed(names) => load::candidates(names).into_iter().next(),
        Names::Missing | Names::Unread(_) => None,
    };
    let list = file.as_ref().and_then(|file| read(file, snapshot));
    let state = decide(snapshot, list.as_ref());
    Inspection { state, file, list }
}

fn read(file: &OsStr, snapshot: &Snapshot) -> Option<Result<List, Refusal>> {
    match &snapshot.content {
        Content::Bytes(bytes) => Some(List::load(file, bytes.as_slice(), snapshot.drop_ins.clone())),
        Content::Broken(why) => {
            let reason = format!("it cannot be read: {why}");
            Some(Err(Refusal { file: file.to_owned(), by: By::Both, at: None, reason }))
        }
        Content::Unread(_) => None,
    }
}

fn decide(snapshot: &Snapshot, list: Option<&Result<List, Refusal>>) -> State {
    match &snapshot.marker {
        Marker::Present => return State::Uninstalled,
        Marker::Unknown(why) => {
            return unknown(format!("whether the node is uninstalled cannot be told: {why}"));
        }
        Marker::Absent => {}
    }
    if let Want::Nothing(why) = &snapshot.want {
        return unknown(format!("no entry is known to be wanted: {why}"));
    }
    if let Names::Unread(why) = &snapshot.names {
        return unknown(format!("the directory cannot be listed: {why}"));
    }
    if let Names::Listed(names) = &snapshot.names
        && let Some(state) = derived_state(&derived::choose(names), list, snapshot)
    {
        return state;
    }
    match (list, &snapshot.content) {
        (Some(Ok(list)), _) => judge(list, &snapshot.want),
        (Some(Err(refusal)), _) if refusal.by == By::Us => unknown(refusal.to_string()),
        (Some(Err(refusal)), _) => State::Invalid { why: refusal.to_string() },
        (None, Content::Unread(why)) if has_file(&snapshot.names) => {
            unknown(format!("the file that the runtime would load cannot be read: {why}"))
        }
        (None, _) => State::NoList,
    }
}

/// The state where the runtime loads a derived list; `None` where it loads another.
fn derived_state(
    choice: &derived::Choice,
    list: Option<&Result<List, Refusal>>,
    snapshot: &Snapshot,
) -> Option<State> {
    let loaded = choice.loaded.as_ref()?;
    let source_name = derived::source_of(loaded)?;
    let drifted = |how: String| Some(State::Drifted { how });
    let shown = loaded.display();
    if choice.loads_stale() {
        return match &choice.first {
            None => drifted(format!(
                "{shown} is left, and {}, from which it was derived, is gone",
                source_name.display()
            )),
            Some(first) => {
                drifted(format!("{shown} stands before {}, from which it is not derived", first.display()))
            }
        };
    }
    let source = match &snapshot.source {
        Some(Content::Bytes(bytes)) => List::load(source_name, bytes.as_slice(), DropIns::none()),
        Some(Content::Broken(why)) => {
            return Some(invalid(format!(
                "{}, from which {shown} is derived, cannot be read: {why}",
                source_name.display()
            )));
        }
        Some(Content::Unread(why)) => {
            return Some(unknown(format!("{} cannot be read: {why}", source_name.display())));
        }
        None => {
            return Some(unknown(format!(
                "{}, from which {shown} is derived, was not read",
                source_name.display()
            )));
        }
    };
    // What its owner is still writing is waited for (C04); the derived list goes on meanwhile.
    let source = match source {
        Ok(source) => source,
        Err(refusal) => return Some(invalid(refusal.to_string())),
    };
    match list {
        Some(Ok(list)) => match judge(list, &snapshot.want) {
            State::Chained if !derived::is_current(list, &source) => {
                drifted(format!("{} was changed since {shown} was derived from it", source_name.display()))
            }
            // It is ours to write, whatever became of it.
            State::Invalid { why } => drifted(why),
            state => Some(state),
        },
        Some(Err(refusal)) => drifted(refusal.to_string()),
        None => None,
    }
}

fn has_file(names: &Names) -> bool {
    matches!(names, Names::Listed(names) if names.iter().any(|name| load::is_candidate(name)))
}

/// The state of a list that both versions take.
fn judge(list: &List, want: &Want) -> State {
    let file = list.file_name().display();
    if list.is_loopback_only() {
        return invalid(format!("{file} holds only loopback"));
    }
    if list.kind() == Kind::Single {
        return match derived::can_derive(list) {
            Ok(()) => State::Stripped,
            Err(error) => invalid(error.to_string()),
        };
    }
    if let Some(drop_in) = list.drop_ins().iter().find(|entry| entry.is_ours()) {
        let how =
            format!("an entry of ours stands in the drop-in {}/{}", list.name(), drop_in.file_name.display());
        return State::Drifted { how };
    }
    let ours: Vec<_> = list.ours().collect();
    if ours.len() == list.entries().len() {
        return invalid(format!("{file} holds no entry but ours"));
    }
    match (ours.as_slice(), want) {
        ([], _) => State::Stripped,
        (_, _) if edit::place(list) == Some(0) => {
            let how = "our entry stands before every other, and would be run without a result to hand on";
            State::Drifted { how: how.to_owned() }
        }
        ([entry], Want::Entry(wanted)) if !wanted.equals(entry) => {
            State::Drifted { how: "our entry differs from the wanted one".to_owned() }
        }
        ([_], _) => State::Chained,
        (several, _) => State::Drifted { how: format!("it holds {} entries of ours", several.len()) },
    }
}

fn unknown(why: String) -> State {
    State::Unknown { why }
}

fn invalid(why: String) -> State {
    State::Invalid { why }
}

#[cfg(test)]
mod tests;
