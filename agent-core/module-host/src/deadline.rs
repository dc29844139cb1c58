//! How long a call may run (M04): in processor time of its thread, so that a good module is not stopped because the node
//! is busy; and, much later, on the wall, so that nobody waits for ever. And how long several calls have together.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::limits::WALL_FACTOR;

/// The time that several calls have together, on the wall: whoever is made to wait for them waits no longer, whatever
/// each of them may take by its own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    until: Option<Instant>,
}

impl Budget {
    /// Nobody waits: each call has its own limit and no other.
    pub(crate) const ENDLESS: Self = Self { until: None };

    /// Begins now.
    pub(crate) fn new(time: Duration) -> Self {
        Self { until: Instant::now().checked_add(time) }
    }

    /// Whether nothing is left.
    pub(crate) fn is_over(self) -> bool {
        self.left_at(Instant::now()).is_none()
    }

    fn left_at(self, now: Instant) -> Option<Duration> {
        match self.until {
            Some(until) => until.checked_duration_since(now).filter(|left| !left.is_zero()),
            None => Some(Duration::MAX),
        }
    }
}

/// The end of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    processor: Duration,
    wall: Instant,
    budget: Budget,
}

impl Deadline {
    /// A call that begins now and may take so much processor time, and no more than what is left of the budget.
    pub(crate) fn new(limit: Duration, budget: Budget) -> Self {
        let now = Instant::now();
        let wall = now.checked_add(limit.saturating_mul(WALL_FACTOR)).unwrap_or(now);
        Self { processor: processor().saturating_add(limit), wall, budget }
    }

    /// What is left, on the thread that runs the call; nothing when it is to be stopped.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_at(processor(), Instant::now())
    }

    /// Whether the time is over that it shares with other calls.
    pub(crate) fn is_budget_over(&self) -> bool {
        self.budget.is_over()
    }

    fn left_at(&self, used: Duration, now: Instant) -> Option<Duration> {
        let processor = self.processor.checked_sub(used).filter(|left| !left.is_zero())?;
        let wall = self.wall.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(processor.min(wall).min(self.budget.left_at(now)?))
    }
}

/// The processor time of this thread.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn m04_a_call_that_did_not_get_the_processor_goes_on_and_one_that_used_it_up_ends() {
        let now = Instant::now();
        let deadline = Deadline { processor: MS * 10, wall: now + MS * 200, budget: Budget::ENDLESS };
        assert_eq!(deadline.left_at(MS * 4, now + MS * 100), Some(MS * 6));
        assert_eq!(deadline.left_at(MS * 10, now), None);
        assert_eq!(deadline.left_at(MS * 4, now + MS * 200), None);
        assert_eq!(deadline.left_at(MS, now + MS * 199), Some(MS));
    }

    #[test]
    fn m04_the_time_that_calls_have_together_ends_each_of_them_whatever_its_own_limit_leaves() {
        let now = Instant::now();
        let budget = Budget { until: Some(now + MS * 50) };
        let deadline = Deadline { processor: MS * 100, wall: now + MS * 2000, budget };
        assert_eq!(deadline.left_at(MS, now), Some(MS * 50));
        assert_eq!(deadline.left_at(MS * 80, now + MS * 20), Some(MS * 20));
        assert_eq!(deadline.left_at(MS, now + MS * 49), Some(MS));
        assert_eq!(deadline.left_at(MS, now + MS * 50), None);
        assert!(Budget::new(Duration::ZERO).is_over() && !Budget::new(Duration::MAX).is_over());
    }

    #[test]
    fn m04_a_thread_that_waits_uses_no_processor_time() {
        let deadline = Deadline::new(MS * 10, Budget::ENDLESS);
        std::thread::park_timeout(MS * 50);
        assert!(deadline.left().is_some());
        while deadline.left().is_some() {
            std::hint::spin_loop();
        }
    }
}
