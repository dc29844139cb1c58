//! What is tried again each second is not said each second.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aether_domain::limits::FOREIGN_LISTENER_LOG;

/// The last thing that was said of one matter.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<Option<(String, Instant)>>);

impl Repeats {
    /// Whether to say it: it is something else than the last time, or that was long ago.
    pub(super) fn news(&self, text: &str) -> bool {
        // Replaced as a whole.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            last.as_ref().is_some_and(|(said, at)| said == text && at.elapsed() < FOREIGN_LISTENER_LOG);
        if !known {
            *last = Some((text.to_owned(), Instant::now()));
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o03_the_same_is_said_once_and_something_else_at_once() {
        let repeats = Repeats::default();
        assert!(repeats.news("a"));
        assert!(!repeats.news("a"));
        assert!(repeats.news("b"));
        assert!(repeats.news("a"));
    }
}
