//! Why the program ends without being done, how it ends then, and what to do.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use aether_conflist::own::EntryError;
use aether_durable::atomic::WriteError;
use aether_durable::read::ReadError;
use aether_list_keeper::plugin::BinaryError;
use aether_list_keeper::rewrite::RewriteError;
use rustix::io::Errno;

use crate::exit::Exit;
use crate::refusal::Refusal;

/// Why the program is not done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A rule forbids it.
    #[error("refused")]
    Refused(#[from] Refusal),
    /// The plugin's binary.
    #[error(transparent)]
    Binary(#[from] BinaryError),
    /// One of our files cannot be read.
    #[error("cannot tell how this node stands")]
    Read(#[from] ReadError),
    /// A step failed; those before it are done, and the next run goes on from there.
    #[error("cannot {what}")]
    Step {
        /// What the step is for.
        what: &'static str,
        /// Why.
        #[source]
        source: WriteError,
    },
    /// The list cannot be replaced.
    #[error(transparent)]
    Rewrite(#[from] RewriteError),
    /// Our own entry is wrong.
    #[error("cannot make the entry")]
    Entry(#[from] EntryError),
    /// Another program holds the lock.
    #[error("{path} has been locked by another program (an agent, or another installer) for {waited:?}")]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The program was asked to end while it waited for the lock.
    #[error(
        "ended by a signal while it waited for {path}, which another program has locked; nothing was changed"
    )]
    Stopped {
        /// The lock.
        path: PathBuf,
    },
    /// Somebody changes the list again and again.
    #[error(
        "{path} was changed by another program each of the {attempts} times that it was about to be, or had been, edited"
    )]
    Restless {
        /// The list.
        path: PathBuf,
        /// How often.
        attempts: u32,
    },
    /// An uninstall could not take everything away.
    #[error(
        "the uninstall is not finished: {0} of the things named above are left; the marker stands, so nothing is put back"
    )]
    Unfinished(usize),
}

impl Error {
    /// How the program ends.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Refused(refusal) => refusal.exit(),
            Self::Binary(_)
            | Self::Read(_)
            | Self::Step { .. }
            | Self::Rewrite(_)
            | Self::Entry(_)
            | Self::Busy { .. }
            | Self::Stopped { .. }
            | Self::Restless { .. }
            | Self::Unfinished(_) => Exit::Failed,
        }
    }

    /// Whether a write found its directory gone, or what it wrote went at once.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Step { source, .. }
            | Self::Binary(BinaryError::Write(source))
            | Self::Rewrite(RewriteError::Write(source)) => source.source.kind() == ErrorKind::NotFound,
            Self::Binary(BinaryError::Gone(_)) => true,
            _ => false,
        }
    }

    /// What to do about it, where the text does not say so itself.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Step { source, .. }
            | Self::Binary(BinaryError::Write(source))
            | Self::Rewrite(RewriteError::Write(source)) => remedy(&source.source),
            Self::Read(ReadError::Io { source, .. })
            | Self::Binary(BinaryError::Read(ReadError::Io { source, .. }))
            | Self::Rewrite(RewriteError::Open { source, .. }) => remedy(source),
            Self::Busy { .. } => Some("run again; `fuser` names the program that holds it"),
            Self::Restless { .. } => {
                Some("find the program (its owner uid and mtime are in `ls -ln`), then run again")
            }
            Self::Refused(_)
            | Self::Read(_)
            | Self::Rewrite(RewriteError::Link(_))
            | Self::Binary(_)
            | Self::Entry(_)
            | Self::Unfinished(_)
            | Self::Stopped { .. } => None,
        }
    }
}

fn remedy(error: &std::io::Error) -> Option<&'static str> {
    let code = Errno::from_io_error(error)?;
    Some(match code {
        Errno::ROFS => {
            "that file system is mounted read-only: mount it writable, or choose the platform's directory with \
             --profile, --cni-conf-dir or --cni-bin-dir"
        }
        Errno::ACCESS => {
            "run as root, or with the capability DAC_OVERRIDE where another user owns the directory"
        }
        Errno::PERM => {
            "the file or directory is immutable (`lsattr`, then `chattr -i`), or a capability is missing: run as root with \
             CHOWN, FOWNER and DAC_OVERRIDE"
        }
        Errno::NOSPC | Errno::DQUOT => {
            "free some space there; the old file stands as it was, and nothing is half-written"
        }
        Errno::IO => "the disk reports errors (see the kernel's log); the old file stands as it was",
        Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY => "something else stands at that path: move it away",
        _ => return None,
    })
}
