//! The store on a real directory: calls, records, tombstones, sweeps, crashes and full disks.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of it is test code, helpers too"
)]

mod calls;
mod concurrency;
mod crash;
mod disk;
mod records;
mod support;
mod sweeps;
mod tombstones;
