//! Events for a person, as long as there is no API server to raise them on: the newest are kept and shown by the admin
//! socket (C06).

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aether_domain::limits::EVENTS_KEPT;
use aether_module_host::ports::ModuleEvent;

/// One event, however often it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) event: ModuleEvent,
    /// Seconds since 1970 of the first and of the last time.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) count: u64,
}

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Events(Mutex<VecDeque<Kept>>);

impl Events {
    /// Keeps an event. One that says the same as an earlier one is counted there, and is the newest then.
    pub(crate) fn raise(&self, event: ModuleEvent, now: u64) {
        let mut kept = self.lock();
        let same = kept.iter().position(|old| old.event == event);
        let entry = match same.and_then(|index| kept.remove(index)) {
            Some(old) => Kept { last: now, count: old.count.saturating_add(1), ..old },
            None => Kept { event, first: now, last: now, count: 1 },
        };
        if kept.len() >= EVENTS_KEPT {
            kept.pop_front();
        }
        kept.push_back(entry);
    }

    pub(crate) fn all(&self) -> Vec<Kept> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Kept>> {
        // Whole at every moment that the lock is released, by a panic too.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(message: &str) -> ModuleEvent {
        ModuleEvent {
            module: "conflist-reassert".to_owned().try_into().unwrap(),
            reason: "ConflistFight".to_owned(),
            about: "10-a.conflist".to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn c06_events_are_bounded_and_one_that_says_the_same_is_counted() {
        let events = Events::default();
        for number in 0..EVENTS_KEPT + 3 {
            events.raise(event(&number.to_string()), 1);
        }
        events.raise(event("10"), 9);
        let all = events.all();
        assert_eq!(all.len(), EVENTS_KEPT);
        let last = all.last().unwrap();
        assert_eq!((last.event.message.as_str(), last.first, last.last, last.count), ("10", 1, 9, 2));
    }
}
