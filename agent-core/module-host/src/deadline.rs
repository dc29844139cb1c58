//! How long a call may run (M04): in processor time of its thread, so that a good module is not stopped because the node
//! is busy; and, much later, on the wall, so that nobody waits for ever.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::limits::WALL_FACTOR;

/// The end of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    processor: Duration,
    wall: Instant,
}

impl Deadline {
    /// A call that begins now and may take so much processor time, and so much time on the wall at the very most.
    pub(crate) fn new(limit: Duration, wall: Duration) -> Self {
        let wall = wall.min(limit.saturating_mul(WALL_FACTOR));
        let now = Instant::now();
        Self { processor: processor().saturating_add(limit), wall: now.checked_add(wall).unwrap_or(now) }
    }

    /// What is left, on the thread that runs the call; nothing when it is to be stopped.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.left_at(processor(), Instant::now())
    }

    fn left_at(&self, used: Duration, now: Instant) -> Option<Duration> {
        let processor = self.processor.checked_sub(used).filter(|left| !left.is_zero())?;
        let wall = self.wall.checked_duration_since(now).filter(|left| !left.is_zero())?;
        Some(processor.min(wall))
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
        let deadline = Deadline { processor: MS * 10, wall: now + MS * 200 };
        assert_eq!(deadline.left_at(MS * 4, now + MS * 100), Some(MS * 6));
        assert_eq!(deadline.left_at(MS * 10, now), None);
        assert_eq!(deadline.left_at(MS * 4, now + MS * 200), None);
        assert_eq!(deadline.left_at(MS, now + MS * 199), Some(MS));
    }

    #[test]
    fn m04_a_thread_that_waits_uses_no_processor_time() {
        let deadline = Deadline::new(MS * 10, Duration::from_secs(60));
        std::thread::park_timeout(MS * 50);
        assert!(deadline.left().is_some());
        while deadline.left().is_some() {
            std::hint::spin_loop();
        }
    }
}
