//! A Kubernetes node for tests, without Kubernetes: namespaces with the production paths, a real containerd in either
//! version, the real flannel and reference plugins, images without a registry, and a small CRI client.
//!
//! [`Node::start`] lays a node out and hands it over running; its drop, and also the death of the test process by
//! SIGKILL, ends every process in it and removes every trace. Nothing of a node shows on the machine but its directory
//! and its processes, so that any number of nodes and test runs can live side by side.

mod aether;
mod agents;
pub mod audit;
mod containerd;
pub mod cri;
pub mod image;
mod init;
pub mod lists;
pub mod load;
mod memory;
mod node;
pub mod plugin;
pub mod policy;
pub mod probe;
mod process;
mod residue;
pub mod roll;
mod socket;
pub mod tools;
mod trace;
pub mod wait;

pub use aether::{INSTALLER, PROGRAMS};
pub use agents::{AGENT, AGENT_LIMIT, Agent, PAST_AGENT, Start};
pub use containerd::Containerd;
pub use node::{Node, Options};
pub use process::{Process, Signal, stands, was_killed};
pub use residue::Residue;
pub use trace::{Threads, Tracer};

/// The PATH of the machine's own programs.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
