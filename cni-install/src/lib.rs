//! The installer of Aether's CNI plugin: binary, wanted state and list entry, onto a node and off it again.
//!
//! The flow: [`args`] and the environment become a checked [`config`]; [`look`] reads the node into [`found`]; [`plan`]
//! (install) or [`removal`] (uninstall), both pure, decide each step or say why not ([`refusal`], [`waiting`]); [`install`]
//! and [`uninstall`] perform the steps under the edit [`lock`](mod@lock), by the durable writes of `aether-durable`, and
//! look again. [`check`] only looks.
//!
//! What a list means, and how our entry goes in and out of it byte by byte, is the crate `aether-conflist`'s.
//!
//! Invariants:
//! - the order of I01: binary, wanted state, marker, list; off again: marker, lists, wanted state, binary;
//! - every step is skipped when its result is there already, so each run goes on where a killed one stopped (I12);
//! - a list is replaced by a rename of a whole new file, and only while it is the file that was inspected (I03);
//! - the lock is never held while waiting (I05).

use crate::config::{Config, Mode, Task};
use crate::error::Error;
use crate::exit::Exit;
use crate::stop::Stop;

pub mod args;
pub mod check;
pub mod config;
pub mod diff;
pub mod edit;
pub mod entry;
pub mod error;
pub mod exit;
pub mod found;
pub mod install;
pub mod install_id;
pub mod lock;
pub mod log;
pub mod look;
pub mod plan;
pub mod profile;
pub mod refusal;
pub mod removal;
pub mod stop;
pub mod tidy;
pub mod uninstall;
pub mod waiting;
pub mod watch;

/// Does what the configuration says, until it is done or asked to stop.
pub fn run(config: &Config, stop: &Stop) -> Result<Exit, Error> {
    match (&config.task, config.mode) {
        (_, Mode::Check) => check::run(&config.places),
        (Task::Install(order), mode) => install::run(&config.places, order, config.force, mode, stop),
        (Task::Uninstall(order), mode) => uninstall::run(&config.places, order, config.force, mode, stop),
    }
}
