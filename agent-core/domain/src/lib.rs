//! The pure heart of Aether: identifiers, the places and times of the system, the formats of the files it
//! keeps, and the decisions about them. Nothing in this crate does I/O, reads a clock or spawns a task.

pub mod chain;
pub mod clock;
pub mod format;
pub mod ids;
pub mod key;
pub mod limits;
pub mod managed;
pub mod paths;
pub mod pods;
pub mod record;
pub mod takeover;
pub mod text;
pub mod tombstone;
pub mod upstreams;
pub mod wanted;
