//! What an install waits for (I05): each text says what is missing or wrong, and where.

use std::path::PathBuf;
use std::time::Duration;

/// Why there is no list to take yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The directory of lists does not exist.
    #[error(
        "the directory of CNI lists {0} does not exist; if the runtime keeps them elsewhere, give --profile or \
         --cni-conf-dir; nothing is installed until it exists"
    )]
    ConfDir(PathBuf),
    /// The directory of plugins does not exist.
    #[error(
        "the directory of CNI plugins {0} does not exist; if the runtime runs them from elsewhere, give --profile or \
         --cni-bin-dir; nothing is installed until it exists"
    )]
    BinDir(PathBuf),
    /// No file that a runtime looks at.
    #[error(
        "{0} holds no file with the ending .conflist, .conf or .json; the node's own network has to write its list \
         there (if the runtime loads it from elsewhere, give --profile or --cni-conf-dir)"
    )]
    NoList(PathBuf),
    /// Another file than `--conf-name` would be loaded.
    #[error(
        "the runtime would load {found}, but --conf-name expects {expected}; no other file is edited: remove {found}, \
         or change --conf-name"
    )]
    Unexpected {
        /// The first file.
        found: PathBuf,
        /// The expected one.
        expected: String,
    },
    /// The first file is one that the runtime refuses.
    #[error(
        "the runtime refuses the file it would load, {path}: {why}; it is left alone, and no other is taken since the \
         runtime takes none: its owner has to correct it"
    )]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Who refuses it, where and why.
        why: String,
    },
    /// The first file gives a pod only `loopback`.
    #[error(
        "{0}, the file that the runtime would load, holds only loopback, which is no network to chain to; the node's \
         own network has to write a list that sorts before it"
    )]
    LoopbackOnly(PathBuf),
    /// A directory is removed each time that it is written to.
    #[error("another program removes a directory while it is written to: {0}")]
    Removed(String),
}

/// When a waiting program says something: at once when the reason changes, else every `interval`.
#[derive(Debug)]
pub struct Reminder {
    interval: Duration,
    last: Option<(Missing, Duration)>,
}

impl Reminder {
    /// One that repeats itself every `interval`.
    pub fn every(interval: Duration) -> Self {
        Self { interval, last: None }
    }

    /// Whether to say `missing` now, `elapsed` after the start.
    pub fn is_due(&mut self, missing: &Missing, elapsed: Duration) -> bool {
        let due = match &self.last {
            Some((last, said)) => last != missing || elapsed.saturating_sub(*said) >= self.interval,
            None => true,
        };
        if due {
            self.last = Some((missing.clone(), elapsed));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aether_domain::limits::INSTALL_WAIT_LOG;

    #[test]
    fn i05_f5_it_is_said_at_once_then_every_30_s_and_at_once_when_the_reason_changes() {
        let (empty, other) = (Missing::NoList("/d".into()), Missing::ConfDir("/d".into()));
        let mut reminder = Reminder::every(INSTALL_WAIT_LOG);
        let mut said = Vec::new();
        for second in 0..=95 {
            let missing = if second == 70 { &other } else { &empty };
            if reminder.is_due(missing, Duration::from_secs(second)) {
                said.push(second);
            }
        }
        assert_eq!(INSTALL_WAIT_LOG, Duration::from_secs(30));
        assert_eq!(said, [0, 30, 60, 70, 71]);
    }
}
