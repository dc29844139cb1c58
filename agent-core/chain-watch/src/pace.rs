//! When it is looked after an event: soon as a rule, and at leisure where somebody never rests (C01). Pure.

use std::time::Duration;

use aether_domain::limits::{CHAIN_EVENT_BURST, CHAIN_EVENT_GAP, CHAIN_EVENT_REST};
use tokio::time::Instant;

/// How often events may ask for a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The shortest time from one look to the next.
    pub gap: Duration,
    /// How many looks may come at that pace.
    pub burst: u32,
    /// The time from one look to the next where these are used up; each such time gives one of them back.
    pub rest: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { gap: CHAIN_EVENT_GAP, burst: CHAIN_EVENT_BURST, rest: CHAIN_EVENT_REST }
    }
}

/// What is left of the looks that come soon.
#[derive(Debug)]
pub(crate) struct Pace {
    limits: Limits,
    left: u32,
    /// Up to when what comes back is counted; lies ahead where one that is to come is spent already.
    counted: Instant,
}

impl Pace {
    pub(crate) fn new(limits: Limits, now: Instant) -> Self {
        Self { limits, left: limits.burst, counted: now }
    }

    /// When to look for an event that is heard now, where the last look began at `began`.
    pub(crate) fn next(&mut self, began: Instant, now: Instant) -> Instant {
        let Limits { gap, burst, rest } = self.limits;
        while self.left < burst && now.saturating_duration_since(self.counted) >= rest {
            self.left += 1;
            self.counted += rest;
        }
        if self.left == burst {
            self.counted = now;
        }
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            return began + gap;
        }
        self.counted += rest;
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LIMITS: Limits =
        Limits { gap: Duration::from_millis(3), burst: 4, rest: Duration::from_millis(100) };

    /// Looks for events that never end, each look as short as can be; when each began, from `start` on.
    fn restless(pace: &mut Pace, start: Instant, looks: usize) -> Vec<Duration> {
        let mut now = start;
        let mut began = Vec::new();
        for _ in 0..looks {
            now = pace.next(now, now);
            began.push(now - start);
        }
        began
    }

    #[test]
    fn c01_a_few_events_are_looked_at_at_once_and_many_at_leisure() {
        let start = Instant::now();
        let mut pace = Pace::new(LIMITS, start);
        let times = |times: [u32; 7]| times.map(|ms| MS * ms);
        assert_eq!(restless(&mut pace, start, 7), times([3, 6, 9, 12, 100, 200, 300]));
        // What came back in half a second: the four, and no more.
        let later = start + MS * 900;
        assert_eq!(restless(&mut pace, later, 7), times([3, 6, 9, 12, 100, 200, 300]));
        // One comes back in the time of one.
        let later = later + MS * 450;
        assert_eq!(restless(&mut pace, later, 2), [MS * 3, MS * 50]);
    }

    #[test]
    fn c01_whatever_happens_when_no_more_looks_come_than_the_limits_allow() {
        let start = Instant::now();
        // Pauses of all lengths, in an order without a period.
        let pauses = (0..2000_u32).map(|n| MS * (n.wrapping_mul(2_654_435_761) >> 25));
        let mut pace = Pace::new(LIMITS, start);
        let (mut now, mut looks) = (start, Vec::new());
        for pause in pauses {
            now = pace.next(now, now + pause).max(now + pause);
            looks.push(now);
        }
        for (n, first) in looks.iter().enumerate() {
            for (more, last) in looks.iter().skip(n).enumerate() {
                let within = *last - *first;
                let allowed = u128::from(LIMITS.burst) + within.as_millis() / LIMITS.rest.as_millis() + 1;
                assert!(more as u128 <= allowed, "{more} looks after look {n} within {within:?}");
            }
        }
    }
}
