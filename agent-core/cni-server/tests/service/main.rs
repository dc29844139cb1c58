//! The service on real sockets, in front of a service that a test scripts.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "all of it is test code, helpers too"
)]

mod bounds;
mod callers;
mod draining;
mod logging;
mod support;
mod wire;
