//! The keeper on real directories: late writers, kills and faults at each system call, links, derived lists.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panicking"
)]

mod crash;
mod derived;
mod disk;
mod late;
mod links;
mod lists;
mod memory;
mod plugin;
mod support;
