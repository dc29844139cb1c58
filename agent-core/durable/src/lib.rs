//! Files that survive: written whole or not at all, acknowledged only once they are on the disk.
//!
//! Everything durable in the workspace goes through [`atomic`]; `cargo xtask tidy` refuses other writes. Callers block:
//! inside a runtime they belong on a blocking thread.

pub mod atomic;
pub mod attributes;
pub mod boot;
pub mod lock;
pub mod read;
mod sys;
pub mod writers;

pub use attributes::Attributes;
