//! Chance that can be had again: the same seed draws the same. (What the machine makes of it differs all the same.)

use std::time::Duration;

/// A generator of numbers: xorshift.
#[derive(Debug)]
pub(crate) struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    /// From a seed, or from the clock.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let seed = seed.unwrap_or(u64::from(clock.subsec_nanos()) ^ (clock.as_secs() << 20)).max(1);
        Self { seed, state: seed }
    }

    /// What it began with.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % bound.max(1)
    }

    /// A time below `bound`, by the microsecond.
    pub(crate) fn time(&mut self, bound: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(bound.as_micros()).unwrap_or(u64::MAX)))
    }
}

/// Reads a seed as it is printed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").ok_or_else(|| format!("{text}: a seed begins with 0x"))?;
    u64::from_str_radix(digits, 16).map_err(|error| format!("{text}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        let draw = || {
            let mut chance = Chance::new(Some(seed("0xbeef").unwrap()));
            (0..5).map(|_| chance.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!(draw().iter().any(|drawn| *drawn != draw()[0]));
        assert!(seed("12").is_err());
    }
}
