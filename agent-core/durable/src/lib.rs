//! Files that survive: written whole or not at all, acknowledged only once they are on the disk.
//!
//! Everything durable in the workspace goes through [`atomic`]; `cargo xtask tidy` refuses other writes. Callers block:
//! inside a runtime they belong on a blocking thread. Beside files: sockets that are placed as carefully ([`socket`]), and
//! descriptors that go from one process to another ([`descriptors`]).

pub mod atomic;
pub mod attributes;
pub mod boot;
pub mod descriptors;
pub mod lock;
pub mod mark;
pub mod read;
pub mod socket;
mod sys;
pub mod writers;

pub use attributes::Attributes;
