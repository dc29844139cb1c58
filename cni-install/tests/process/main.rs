//! The real program on a node in a temporary directory. Test names carry the rules of `agent-core/docs/behaviours.md`
//! that they prove; doc comments name the rows of the case list (A11, B1, ...) that they repeat. Runs as root; needs
//! `strace` and `chattr`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod choice;
mod concurrent;
mod crash;
mod events;
mod faults;
mod fixtures;
mod list;
mod marker;
mod mount;
mod neighbours;
mod order;
mod points;
mod show;
mod support;
mod wait;
