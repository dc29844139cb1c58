//! The hands that change a node's CNI configuration: the runtime's list, the list derived from a single configuration, the
//! plugin's binary, and what is remembered of a healthy chain. What to change is decided elsewhere.
//!
//! [`Keeper`] is what the agent has: each call blocks, takes `edit.lock`, reads marker and wanted state again under it
//! (I01, C03), and asks `still` at the last moment. The pieces below it, without a lock of their own, are shared with the
//! installer: [`look`] reads, [`rewrite`] replaces a list that others write too (C02), [`derive`] writes derived lists
//! (I06), [`plugin`] restores the binary (C10).
//!
//! ```text
//! Keeper --edit.lock--> marker, wanted state --> rewrite: inspected? still? rename; look at the replaced inode again
//! ```

pub mod derive;
mod keeper;
pub mod links;
pub mod look;
pub mod memory;
pub mod plugin;
pub mod rewrite;

pub use keeper::{Keeper, Outcome, Places};
pub use memory::Recalled;
