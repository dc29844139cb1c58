//! `agent-ready`, the exec probe of the agent's container: it asks the agent over a unix socket in the pod's own
//! directory, so that the kubelet is never answered by the other agent of the node (B02).
//!
//! [`args`] says what to ask and where; [`http`] is the little of HTTP that this takes, without I/O; [`ask`] connects,
//! asks and gives up in time; [`outcome`] makes of it an exit code and a text.
//!
//! **Invariants.** It ends within its time limit, whatever the other side does. It is built from the standard library
//! alone and stays within its byte budget (B01).

pub mod args;
pub mod ask;
pub mod http;
pub mod outcome;
