//! The CNI service on `cni.sock`: it takes the plugin's calls, checks who calls and what, and hands them to a
//! [`PodService`](aether_domain::pods::PodService).
//!
//! A call is worked on in a task of its own, which goes on when the connection is gone: `tonic` drops a handler at any
//! await when its caller leaves, and the work must not stop in the middle of it. What the handler leaves behind is the
//! knowledge that nobody waits any more (`peer`), which the service looks at in the call's turn (K16).

mod calls;
mod convert;
mod handler;
mod peer;
mod server;
mod status;

pub use calls::{Answered, Calls, Command, code_name};
pub use server::{Handle, ServeError, Server};
