//! Before and after the steps: leftovers of killed runs go (I12), and what is done is on the disk.

use std::ffi::OsString;

use aether_domain::text::error_chain;
use aether_durable::atomic::{self, Removed, WriteError};
use aether_list_keeper::derive;
use rustix::io::Errno;

use crate::config::Places;
use crate::error::Error;
use crate::log;

/// Removes the temporary files of killed runs. Under the lock. One that cannot be removed is said, and no reason to
/// stop: whatever is in its way will stop the step that matters, or nothing.
pub fn sweep(places: &Places) {
    for dir in [&places.conf_dir, &places.bin_dir] {
        match atomic::sweep_temporaries(dir) {
            Ok(0) => {}
            Ok(count) => log::line(format_args!(
                "removed {count} temporary files of a killed run from {}",
                dir.display()
            )),
            Err(error) => log::line(error_chain(&error)),
        }
    }
    // The agent has temporary files of its own in the state directory.
    match atomic::sweep_temporary_of(&places.marker()) {
        Ok(Removed::Absent) => {}
        Ok(Removed::Yes) => log::line("removed the temporary file of a killed run beside the marker"),
        Err(error) => log::line(error_chain(&error)),
    }
}

/// Removes derived lists whose source is gone, or is no longer the first (I06).
pub fn stale(places: &Places, names: &[OsString]) -> Result<(), Error> {
    let removed = derive::remove(&places.conf_dir, names)
        .map_err(|source| Error::Step { what: "remove a derived list", source })?;
    for name in removed {
        log::line(format_args!(
            "removed {}, a list that was derived here",
            places.conf_dir.join(name).display()
        ));
    }
    Ok(())
}

/// Waits until the directories are on the disk: a run that was killed between a rename and its fsync left that to the
/// next one, which finds everything in place.
pub fn settle(places: &Places) -> Result<(), Error> {
    for dir in [&places.bin_dir, &places.conf_dir, &places.state_dir] {
        match atomic::sync_dir(dir) {
            Ok(()) => {}
            Err(WriteError { source, .. }) if harmless(&source) => {}
            Err(source) => {
                return Err(Error::Step { what: "wait until the changes are on the disk", source });
            }
        }
    }
    Ok(())
}

/// Not there, or read-only: then nothing of ours waits to be written.
fn harmless(error: &std::io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::ROFS | Errno::INVAL))
}
