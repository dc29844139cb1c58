//! The chained CNI plugin: exec'd by the container runtime for each pod, it tells the agent and hands on what the
//! plugins before it made.
//!
//! The data flows one way. [`environment`] and [`config`] turn what the runtime gave into an [`invocation`], without
//! I/O; [`shell`] asks the agent over its socket; [`verdict`] turns the agent's answer, or its absence, into what comes
//! next; [`reply`] writes the one document that leaves.
//!
//! **Invariants.** Standard output carries at most one JSON document, whatever happens (K02). `prevResult` leaves as
//! the bytes it came in (K03). An ADD without an answer fails, a DEL without one succeeds (K04, K07).

pub mod config;
pub mod environment;
pub mod failure;
pub mod invocation;
pub mod pod;
pub mod reply;
pub mod shell;
pub mod verdict;
pub mod version;
