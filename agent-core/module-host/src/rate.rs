//! How many lines or events of a module are passed on (M13).

use std::time::Duration;

/// The length of a window.
const WINDOW: Duration = Duration::from_secs(60);

/// A fixed number per window of a minute; what is over it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rate {
    per_window: u32,
    began: Duration,
    used: u32,
    dropped: u64,
}

impl Rate {
    /// At most `per_minute` in a minute.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_window: per_minute, began: Duration::ZERO, used: 0, dropped: 0 }
    }

    /// Whether one more is passed on at `now` on the host's clock.
    pub(crate) fn allows(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.began) >= WINDOW {
            self.began = now;
            self.used = 0;
        }
        if self.used < self.per_window {
            self.used += 1;
            return true;
        }
        self.dropped = self.dropped.saturating_add(1);
        false
    }

    /// How many were not passed on, ever.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m13_what_is_over_the_rate_is_dropped_and_counted_until_the_next_minute() {
        let mut rate = Rate::new(3);
        let passed = (0..100_000).filter(|_| rate.allows(Duration::from_secs(1))).count();
        assert_eq!((passed, rate.dropped()), (3, 99_997));
        assert!(rate.allows(Duration::from_secs(61)));
    }
}
