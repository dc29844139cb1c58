//! Decisions about ADD, DEL, CHECK, GC, tombstones and the sweep, without I/O.
//!
//! [`table::Table`] holds what is on the disk and says what to do next; the store does it, durably, and only then tells
//! the table. [`port`] is what the CNI server asks of the store, and what the store asks of the world.

pub mod forgotten;
pub mod port;
pub mod sweep;
pub mod table;

pub use port::{
    AddError, Added, Caller, Change, Check, Del, Deleted, Fault, FirstInstall, Gc, Known, NetnsLook,
    NotServing, Observer, PodService, Presence, Seen, ServiceError, Trouble, Unusable,
};
pub use table::{Refusal, Table};
