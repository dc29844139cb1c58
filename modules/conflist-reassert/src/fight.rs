//! Telling a fight from a repair (C06): somebody who undoes each repair is answered ever later, and said once.
//!
//! How long a repair stood is told by the other writer's own time, as far as that can be known: on a busy node it is noticed
//! late, and a late look must not be taken for a repair that stood.

/// How many repairs in a row may be undone before the next one waits.
pub const FREE: u32 = 5;
/// A repair counts as undone when the entry is gone again this soon, in milliseconds; in a fight, within twice its wait.
pub const UNDONE_WITHIN_MS: u64 = 1000;
/// The first wait, in milliseconds.
pub const WAIT_MS: u64 = 500;
/// The longest wait, in milliseconds.
pub const WAIT_MAX_MS: u64 = 60_000;
/// How many times its wait, or [`UNDONE_WITHIN_MS`] where that is longer, a repair has to stand for a fight to be over. One
/// that stands for less is not undone, but proves little, since the other writer may have been kept from it for once: it
/// takes back one that was undone.
pub const CALM: u64 = 10;
/// How far the times of files lag behind the clock, at most, in milliseconds: a tick of the slowest kernel.
const GRAIN_MS: u64 = 10;

/// A moment, on both clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds on a clock that never goes back.
    pub monotonic: u64,
    /// Milliseconds since 1970, as files carry them.
    pub wall: u64,
}

/// What was repaired and undone so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fight {
    undone: u32,
    on: bool,
    repaired: Option<Repair>,
    /// The entry is seen to be gone since the last repair: counted once.
    counted: bool,
}

/// A repair; the rename lies between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Repair {
    asked: Moment,
    heard: Moment,
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
    /// The entry is seen to be gone at `now`, from a file that was last written at `written` (milliseconds since 1970).
    pub fn stripped(&mut self, now: Moment, written: u64) -> Answer {
        let Some(repair) = self.repaired else { return Answer::Now };
        if !self.counted {
            self.counted = true;
            self.count(repair.stood(now, written));
        }
        let (wait, since) = (self.wait(), now.monotonic.saturating_sub(repair.heard.monotonic));
        if since >= wait { Answer::Now } else { Answer::In(wait - since) }
    }

    /// The entry was put back: asked for at one moment, and known to be done at the other.
    pub fn repaired(&mut self, asked: Moment, heard: Moment) {
        self.repaired = Some(Repair { asked, heard });
        self.counted = false;
    }

    /// Whether this is a fight: from the first wait until the calm.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// How many repairs in a row were undone.
    pub fn undone(&self) -> u32 {
        self.undone
    }

    fn count(&mut self, stood: u64) {
        let wait = self.wait();
        if stood <= UNDONE_WITHIN_MS.max(wait.saturating_mul(2)) {
            self.undone = self.undone.saturating_add(1);
        } else if stood >= UNDONE_WITHIN_MS.max(wait).saturating_mul(CALM) {
            self.undone = 0;
        } else {
            self.undone = self.undone.saturating_sub(1);
        }
        self.on = self.undone > FREE || (self.on && self.undone > 0);
    }

    fn wait(&self) -> u64 {
        let doublings = self.undone.saturating_sub(FREE);
        if doublings == 0 {
            return 0;
        }
        WAIT_MS.saturating_mul(1 << (doublings - 1).min(20)).min(WAIT_MAX_MS)
    }
}

impl Repair {
    /// For how long it stood, at most, in milliseconds.
    fn stood(self, now: Moment, written: u64) -> u64 {
        // It cannot have stood for longer, whatever the clock of files says: that one is set at times.
        let noticed = now.monotonic.saturating_sub(self.heard.monotonic);
        if written.saturating_add(GRAIN_MS) < self.asked.wall {
            // A file that is older than the repair was renamed over it: nobody knows when.
            return noticed;
        }
        written.saturating_sub(self.heard.wall).min(noticed)
    }
}

#[cfg(test)]
mod tests;
