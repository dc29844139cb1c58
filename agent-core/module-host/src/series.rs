//! Metrics of a module: a bounded number of series with bounded names.

use std::collections::BTreeMap;

use crate::limits::SERIES_MAX;

/// The longest name of a series.
const NAME_MAX: usize = 64;

/// A module's series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    refused: u64,
}

impl Series {
    /// Counters, by name.
    pub fn counters(&self) -> &BTreeMap<String, u64> {
        &self.counters
    }

    /// Gauges, by name.
    pub fn gauges(&self) -> &BTreeMap<String, f64> {
        &self.gauges
    }

    /// How many calls named a series too many, or one whose name is not taken.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    pub(crate) fn add(&mut self, name: &str, by: u64) {
        if self.takes(name, self.counters.contains_key(name)) {
            let counter = self.counters.entry(name.to_owned()).or_default();
            *counter = counter.saturating_add(by);
        }
    }

    pub(crate) fn set(&mut self, name: &str, to: f64) {
        if self.takes(name, self.gauges.contains_key(name)) {
            self.gauges.insert(name.to_owned(), to);
        }
    }

    fn takes(&mut self, name: &str, known: bool) -> bool {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let room = self.counters.len() + self.gauges.len() < SERIES_MAX;
        let takes = known || (room && !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(legal));
        if !takes {
            self.refused = self.refused.saturating_add(1);
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m11_series_are_bounded_in_number_and_name() {
        let mut series = Series::default();
        for i in 0..1000 {
            series.add(&format!("n{i}"), 1);
        }
        series.add("n1", 2);
        series.set("Bad Name", 1.0);
        assert_eq!(series.counters().len(), SERIES_MAX);
        assert_eq!(series.counters().get("n1"), Some(&3));
        assert_eq!(series.refused(), 1000 - u64::try_from(SERIES_MAX).unwrap() + 1);
    }
}
