//! The chain's state, from a look at the directory (C01).

use std::ffi::OsString;

use aether_domain::chain::State;

use crate::load::{Content, DropIns, List, Refusal};
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
/// };
/// assert_eq!(chain::state(&snapshot), State::Stripped);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn state(snapshot: &Snapshot) -> State {
    inspect(snapshot).state
}

/// The chain's state, the file, and what it holds. The file and the list are told whatever the state is.
pub fn inspect(snapshot: &Snapshot) -> Inspection {
    let _ = snapshot;
    unimplemented!()
}
