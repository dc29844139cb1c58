//! `handover.sock`: over it a standby calls on the owner, is greeted with duplicates of the listening sockets, and hears
//! what it needs for the takeover (T13).
//!
//! What is said, and when, is the machine's in [`aether_domain::takeover`]: this crate makes bytes and descriptors of its
//! messages, and its events of what comes. Whoever says something here never waits: a connection whose queue is full
//! belongs to somebody who does not read, and is closed.

mod batches;
mod connection;
mod owner;
mod standby;

pub use batches::Batches;
pub use connection::{Connection, HearError, SayError};
pub use owner::{Standbys, accept};
pub use standby::{Call, CallError, call};
