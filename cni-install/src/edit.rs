//! One edit of a list that others write too.

use std::path::Path;

use aether_list_keeper::rewrite::{self, RewriteError, Rewritten};

use crate::log;

/// How often an edit is tried while another program changes the list.
pub const ATTEMPTS: u32 = 8;

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
) -> Result<Edited, RewriteError> {
    Ok(told(path, rewrite::rewrite(path, old, new, || true, again)?))
}

/// Says what another program had to do with it.
pub fn told(path: &Path, done: Rewritten) -> Edited {
    let shown = path.display();
    match done {
        Rewritten::Yes => return Edited::Yes,
        Rewritten::Changed => {}
        Rewritten::TakenOver => log::line(format_args!(
            "another program wrote into {shown} while it was edited; what it wrote is taken over"
        )),
        Rewritten::Spoiled => log::line(format_args!(
            "another program wrote into {shown} while it was edited, but no list; the list before it stands"
        )),
    }
    Edited::Changed
}
