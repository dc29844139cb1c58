//! One agent's life on the node: the machine of [`aether_domain::takeover`] decides, and this does what it says (T01-T13).
//!
//! `shell` feeds events to the machine, one at a time, and performs its effects in their order; what would block is a job
//! whose answer is an event. Everything else here is one kind of effect: the lock, the look at lock and paths, the
//! sockets and their sessions, the gates. `standing` is what the rest of the agent sees of it.

mod gates;
mod lock;
mod look;
mod perform;
mod repeats;
mod shell;
mod sockets;
mod standing;
mod told;

pub(crate) use shell::{End, Pings, Shell, machine, turns};
pub(crate) use standing::{Standing, Watch};
pub(crate) use told::told;
