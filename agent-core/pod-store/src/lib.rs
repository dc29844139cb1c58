//! The pods of this node, on the disk (S01-S04, S06) and in memory.
//!
//! [`Store`] is a standby's view until [`Store::enable`] makes it the owner's: a standby writes nothing. Every call of
//! one key goes through that key's lane (`lanes`), and what it does in its turn is one job on a blocking thread: decide
//! (`aether_domain::pods::Table`), make it durable, tell the table, tell the observer. The job goes on when the future
//! that began it is dropped, so a call is done whole or not at all.
//!
//! Order of locks: lanes (several only in key order), then the lock against a reload, then a place among the disk jobs,
//! then the table's mutex, which nobody holds across I/O.

mod counts;
mod files;
mod folder;
mod lanes;
mod load;
mod quarantine;
mod rested;
mod service;
mod store;
mod sweep;
mod tombstones;
mod work;

pub use counts::Counts;
pub use load::{Enabled, Reloaded, Updated};
pub use store::{Config, Ports, Store, StoreError};
pub use sweep::Swept;
pub use tombstones::Applied;
