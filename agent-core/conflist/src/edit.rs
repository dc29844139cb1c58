//! Putting our entry into a list and taking it out again, byte by byte (I02, I09).

use crate::load::List;
use crate::own::OwnEntry;

/// Why a list is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The file holds one plugin's configuration, not a list (I06).
    #[error(
        "{file} holds a single plugin's configuration, which cannot be chained to; a list needs the ending .conflist"
    )]
    Single {
        /// The file.
        file: String,
    },
    /// The list would hold only our entry, and no pod would get a network (I07).
    #[error(
        "{file} holds no entry but ours; it is left alone until its owner writes the node's own network into it"
    )]
    OnlyOurs {
        /// The file.
        file: String,
    },
    /// An entry of ours stands in a drop-in, which is never touched (I04).
    #[error(
        "{drop_in}, a drop-in of {file}, holds an entry of ours, which only containerd 2 would load; remove that file first"
    )]
    InDropIn {
        /// The list's file.
        file: String,
        /// The drop-in's file.
        drop_in: String,
    },
    /// The list holds only `loopback`, which gives a pod no network (I04).
    #[error("{file} holds only loopback; there is no network to chain to")]
    LoopbackOnly {
        /// The file.
        file: String,
    },
}

/// The list's bytes with `wanted` as the only entry of ours.
///
/// - None of ours there: it goes after the last entry, laid out like its neighbours.
/// - One of ours that equals `wanted` as a JSON value: the bytes come back unchanged.
/// - One of ours that differs: its object is replaced where it stands.
/// - Several: the last one stays (and is replaced if it differs), the others go.
///
/// Everything outside the inserted object and its comma keeps its bytes.
pub fn put(list: &List, wanted: &OwnEntry) -> Result<Vec<u8>, EditError> {
    let _ = (list, wanted);
    unimplemented!()
}

/// The list's bytes without any entry of ours; what [`put`] inserted goes exactly, so that putting and removing gives
/// the original bytes. Without an entry of ours the bytes come back unchanged.
///
/// An entry of ours in a drop-in stays, and is no reason to refuse.
pub fn remove(list: &List) -> Result<Vec<u8>, EditError> {
    let _ = list;
    unimplemented!()
}
