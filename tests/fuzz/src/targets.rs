//! The targets, one file each.

pub(crate) mod handover;
pub(crate) mod list;
pub(crate) mod request;
pub(crate) mod state;
pub(crate) mod takeover;
pub(crate) mod verdict;
