//! What the CNI server asks of the store, and what the store asks of the world. Neither knows the other: the assembly
//! joins them.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use crate::clock::Stamp;
use crate::ids::{NetworkName, RequestId};
use crate::key::Key;
use crate::pods::table::Refusal;
use crate::record::Record;

/// The pods of this node.
///
/// Calls of one key are served in the order in which they were first polled (K16). A future that is dropped has either
/// not begun, and never will, or is finished without it: nothing is left half done.
pub trait PodService: Send + Sync + 'static {
    /// Records an attachment. `Ok` means: it is on the disk.
    fn add(
        &self,
        record: Record,
        caller: Arc<dyn Caller>,
    ) -> impl Future<Output = Result<Added, AddError>> + Send;

    /// Forgets an attachment. `Ok` means: the disk holds no record of it that began before the DEL.
    fn del(&self, del: Del) -> impl Future<Output = Result<Deleted, ServiceError>> + Send;

    /// Says what is known of an attachment (K09).
    fn check(&self, check: Check) -> impl Future<Output = Result<Known, ServiceError>> + Send;

    /// Forgets a network's attachments that are not listed and returns how many there were (K11).
    fn gc(&self, gc: Gc) -> impl Future<Output = Result<usize, ServiceError>> + Send;

    /// Whether an ADD could be served now (K10).
    fn status(&self) -> impl Future<Output = Result<(), ServiceError>> + Send;
}

/// Who waits for an ADD's answer (K16).
pub trait Caller: Send + Sync + 'static {
    /// Looks whether it is still there. It must not block.
    fn presence(&self) -> Presence;
}

/// Whether a caller is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// As far as can be seen.
    Here,
    /// Its connection is closed, or it gave the call up.
    Gone,
}

/// What an ADD did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It was recorded.
    Recorded,
    /// It was recorded, and earlier sandboxes of the same pod were forgotten (K05).
    Replaced(Vec<Key>),
    /// It was recorded already, by an earlier attempt of the same call.
    Standing,
}

/// One DEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Del {
    /// The attachment.
    pub key: Key,
    /// When the plugin began.
    pub started: Stamp,
    /// The request.
    pub request_id: RequestId,
}

/// What a DEL found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deleted {
    /// This record, which is gone.
    Removed(Box<Record>),
    /// A record of an ADD that began later; it stays.
    Spared,
    /// None.
    Absent,
}

/// One CHECK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The attachment.
    pub key: Key,
    /// When its network namespace was made, in seconds since 1970, where the plugin could see it.
    pub netns_created: Option<u64>,
}

/// What is known of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// A record of a managed pod.
    Managed,
    /// A record that says unmanaged.
    Unmanaged,
    /// No record, and the namespace is older than the first install.
    BeforeInstall,
    /// No record.
    Missing,
}

/// One GC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gc {
    /// The network that it is about.
    pub network: NetworkName,
    /// What the runtime still has.
    pub valid: BTreeSet<Key>,
    /// When the plugin began.
    pub started: Stamp,
}

/// Something below the store that failed, with its own chain of causes.
pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The store is not open: this agent does not own the node, or does not serve yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this agent does not serve pods now (it is a standby, or just starting); try again, the owner answers on the same socket"
)]
pub struct NotServing;

/// Why an ADD failed. Nothing of it is recorded.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// Try again later.
    #[error(transparent)]
    NotServing(#[from] NotServing),
    /// Not again.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The record would be larger than what is read back.
    #[error(
        "cannot record {key}: with its annotations it takes {bytes} bytes, and a record holds at most {max}; shorten the annotations"
    )]
    TooLarge {
        /// The attachment.
        key: Key,
        /// The record's size.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// A policy says no, for now: the runtime is to try again later (M07).
    #[error("the policy {module} does not let pod {pod} start yet: {message}")]
    Postponed {
        /// The policy.
        module: String,
        /// The pod, with its namespace.
        pod: String,
        /// For the pod's owner.
        message: String,
    },
    /// A policy says no (M07).
    #[error("the policy {module} denies pod {pod}: {message}")]
    Denied {
        /// The policy.
        module: String,
        /// The pod, with its namespace.
        pod: String,
        /// For the pod's owner.
        message: String,
    },
    /// Nobody waits for the answer any more (K16).
    #[error("did not add {key}: its caller is gone")]
    CallerGone {
        /// The attachment.
        key: Key,
    },
    /// The disk.
    #[error("cannot record {key} in the state directory; free or repair the disk, the runtime tries again")]
    Storage {
        /// The attachment.
        key: Key,
        /// What failed there.
        #[source]
        source: Fault,
    },
}

/// Why a call other than an ADD failed.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Try again later.
    #[error(transparent)]
    NotServing(#[from] NotServing),
    /// The disk.
    #[error("cannot {what}")]
    Storage {
        /// What was tried, and on what.
        what: String,
        /// What failed there.
        #[source]
        source: Fault,
    },
}

/// A change of the records, told once it is on the disk, in the order of its key's calls. A removal is told after the
/// record is gone (S04): whoever unregisters on it cannot be undone by a loop that reads the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A new record.
    Added(Box<Record>),
    /// A record in place of another.
    Updated {
        /// What it was.
        before: Box<Record>,
        /// What it is.
        after: Box<Record>,
    },
    /// A record that is gone.
    Removed(Box<Record>),
}

/// Hears of changes.
pub trait Observer: Send + Sync + 'static {
    /// One change. It is called in the middle of a call and must not block.
    fn changed(&self, change: &Change);
}

/// Nobody listens.
impl Observer for () {
    fn changed(&self, _: &Change) {}
}

/// Looks at network namespaces.
pub trait NetnsLook: Send + Sync + 'static {
    /// Looks at `path`. It may block: it is called on a blocking thread.
    fn look(&self, path: &str) -> Seen;
}

/// What is at a namespace's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A namespace of this inode number.
    Namespace {
        /// The inode number; 0 when unknown.
        inode: u64,
    },
    /// Nothing, although the directory that would hold it can be seen.
    Missing,
    /// It cannot be told.
    Unknown {
        /// Why not.
        why: String,
    },
}

/// Tells when Aether was first installed on the node (K09).
pub trait FirstInstall: Send + Sync + 'static {
    /// Seconds since 1970; `None` when it is not known. It may block.
    fn first_installed(&self) -> Option<u64>;
}

/// It is not known.
impl FirstInstall for () {
    fn first_installed(&self) -> Option<u64> {
        None
    }
}

/// A file among ours that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unusable {
    /// The file, with its directory.
    pub file: String,
    /// What kind of trouble it is.
    pub kind: Trouble,
    /// Why, and what became of it.
    pub reason: String,
}

/// Why a file is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// It is damaged, and put aside where that was possible (S02).
    Damaged,
    /// A newer agent wrote it (S02).
    Newer,
    /// It is none of ours, or cannot be read now.
    Foreign,
}

impl Trouble {
    /// All of them, for a metric that has one series each.
    pub const ALL: [Self; 3] = [Self::Damaged, Self::Newer, Self::Foreign];

    /// Its stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Newer => "newer",
            Self::Foreign => "foreign",
        }
    }
}
