//! The real program against directories of its own: who owns the node, what survives, what is said when things are bad.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test's helpers fail as its body does"
)]

mod calls;
mod chain;
mod disk;
mod metrics;
mod modules;
mod ownership;
mod records;
mod repair;
mod sockets;
mod support;
mod takeover;
mod tombstones;
