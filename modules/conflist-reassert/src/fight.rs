//! Telling a fight from a repair (C06): somebody who undoes each repair is answered ever later, and said once.

/// How many repairs in a row may be undone before the next one waits.
pub const FREE: u32 = 5;
/// A repair counts as undone when the entry is gone again this soon, in milliseconds.
pub const UNDONE_WITHIN_MS: u64 = 1000;
/// The first wait, in milliseconds.
pub const WAIT_MS: u64 = 500;
/// The longest wait, in milliseconds.
pub const WAIT_MAX_MS: u64 = 60_000;

/// What was repaired and undone so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fight {
    undone: u32,
    repaired_at: Option<u64>,
    /// The entry is seen to be gone since the last repair: counted once.
    counted: bool,
}

/// Whether to repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Now.
    Now,
    /// In so many milliseconds.
    In(u64),
}

impl Fight {
    /// The entry is not there at `now`.
    pub fn stripped(&mut self, now: u64) -> Answer {
        let Some(repaired_at) = self.repaired_at else { return Answer::Now };
        let since = now.saturating_sub(repaired_at);
        let wait = self.wait();
        if !self.counted {
            self.counted = true;
            let undone = since <= UNDONE_WITHIN_MS.max(wait.saturating_mul(2));
            self.undone = if undone { self.undone.saturating_add(1) } else { 0 };
        }
        let wait = self.wait();
        if since >= wait { Answer::Now } else { Answer::In(wait - since) }
    }

    /// The entry was put back at `now`.
    pub fn repaired(&mut self, now: u64) {
        self.repaired_at = Some(now);
        self.counted = false;
    }

    /// Whether this is a fight.
    pub fn is_on(&self) -> bool {
        self.undone > FREE
    }

    /// How many repairs in a row were undone.
    pub fn undone(&self) -> u32 {
        self.undone
    }

    fn wait(&self) -> u64 {
        let doublings = self.undone.saturating_sub(FREE);
        if doublings == 0 {
            return 0;
        }
        WAIT_MS.saturating_mul(1 << (doublings - 1).min(20)).min(WAIT_MAX_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a writer that undoes each repair after `reaction` for `span` milliseconds; the number of repairs.
    fn play(reaction: u64, span: u64) -> (u32, Fight) {
        let (mut fight, mut now, mut repairs) = (Fight::default(), 0, 0);
        while now < span {
            match fight.stripped(now) {
                Answer::Now => {
                    fight.repaired(now);
                    repairs += 1;
                    now += reaction;
                }
                Answer::In(wait) => now += wait,
            }
        }
        (repairs, fight)
    }

    #[test]
    fn c06_a_writer_that_undoes_each_repair_within_50_ms_is_answered_at_most_twelve_times_in_a_minute() {
        let (repairs, fight) = play(50, 60_000);
        assert!((6..=12).contains(&repairs), "{repairs}");
        assert!(fight.is_on());
        let (an_hour, _) = play(50, 3_600_000);
        assert!(an_hour <= 12 + 60, "the wait never exceeds a minute, nor falls below it: {an_hour}");
    }

    #[test]
    fn c02_c06_a_strip_now_and_then_is_repaired_at_once_for_ever() {
        let (repairs, fight) = play(UNDONE_WITHIN_MS + 1, 1000 * (UNDONE_WITHIN_MS + 1));
        assert_eq!(repairs, 1000);
        assert!(!fight.is_on());
    }

    #[test]
    fn c06_a_fight_is_over_once_the_entry_stays() {
        let (_, mut fight) = play(50, 60_000);
        fight.repaired(100_000);
        assert_eq!(fight.stripped(100_000 + 10 * WAIT_MAX_MS), Answer::Now);
        assert!(!fight.is_on());
    }
}
