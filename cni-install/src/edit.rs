//! One edit of a list that others write too.

use std::path::Path;
use std::time::{Duration, Instant};

use aether_durable::Attributes;
use aether_durable::atomic::{self, Replaced};

use crate::error::Error;
use crate::log;
use crate::rewrite::{self, Held, Outcome, RewriteError};

/// How often an edit is tried while another program changes the list.
pub const ATTEMPTS: u32 = 8;
/// How long a writer that had the list open gets to finish it.
const LATE: Duration = Duration::from_secs(2);
/// The pause between two looks at what it wrote.
const LATE_POLL: Duration = Duration::from_millis(10);

/// What came of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    /// The list is edited.
    Yes,
    /// Another program changed it: look again.
    Changed,
}

/// Replaces `old` at `path` by `new`. Should another program have written into the old file meanwhile, `again` says
/// what becomes of that (`None` while it is half-written), and that is what is put there.
pub fn perform(
    path: &Path,
    old: &[u8],
    new: &[u8],
    again: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<Edited, Error> {
    match rewrite::rewrite(path, old, new)? {
        Outcome::Written => Ok(Edited::Yes),
        Outcome::Changed => Ok(Edited::Changed),
        Outcome::Late(held) => {
            adopt(path, held, new, again)?;
            Ok(Edited::Changed)
        }
    }
}

/// Puts what a late writer wrote, edited, in the place of what it did not know of.
fn adopt(
    path: &Path,
    mut held: Held,
    ours: &[u8],
    again: impl Fn(Vec<u8>) -> Option<Vec<u8>>,
) -> Result<(), Error> {
    let shown = path.display();
    log::line(format_args!(
        "another program wrote into {shown} while it was edited; what it wrote is taken over"
    ));
    let start = Instant::now();
    let mut last = None;
    while start.elapsed() < LATE {
        let bytes = held.read().ok();
        if let Some(list) = bytes.clone().filter(|_| bytes == last).and_then(&again) {
            let attributes = Attributes::of(path).map_err(RewriteError::Write)?;
            let still = || std::fs::read(path).is_ok_and(|now| now == ours);
            // Changed once more: the next look takes that one.
            let (Replaced::Yes | Replaced::No) =
                atomic::replace_when(path, &list, &attributes, still).map_err(RewriteError::Write)?;
            return Ok(());
        }
        last = bytes;
        std::thread::sleep(LATE_POLL);
    }
    log::line(format_args!(
        "what was written into {shown} is no list after {LATE:?}; the list before it stands"
    ));
    Ok(())
}
