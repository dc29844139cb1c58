//! What the runtime makes of its CNI directory, watched and published (C01, C04, C05's choice).
//!
//! One task ([`Watcher::run`]) looks at the directory at start, on every inotify event, at each poll and when asked
//! ([`Looker`]), has
//! `aether-conflist` judge what it read, and publishes an [`Observation`] on a `tokio::sync::watch` channel:
//!
//! ```text
//! net.d --inotify, poll--> Watcher --spawn_blocking--> look::snapshot --> aether_conflist::chain::state --> Observation
//! ```
//!
//! It observes only: nothing in this crate writes.

mod binary;
mod config;
mod events;
mod look;
mod memory;
mod observation;
pub mod pace;
mod watcher;

pub use binary::Binary;
pub use config::Config;
pub use observation::{Cause, Lost, Mode, Observation, Reporter, SeenFile};
pub use watcher::{Looker, Watcher};
