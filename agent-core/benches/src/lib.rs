//! Measurements, each beside its comparison in the same run: machines differ and are noisy, so the ratio is the figure. A
//! bench prints one line a figure and writes all of them as JSON.
#![allow(clippy::print_stdout, reason = "a bench talks to its terminal")]

pub mod exec;
pub mod istio;
pub mod local;
pub mod memory;
pub mod strip;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

/// Samples of one thing, in milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds one.
    pub fn add(&mut self, sample: Duration) {
        self.0.push(sample.as_secs_f64() * 1000.0);
    }

    /// Adds a difference, which may be negative.
    pub fn add_millis(&mut self, millis: f64) {
        self.0.push(millis);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sample below which `percent` of all lie; 0 without samples.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or(0.0)
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.percentile(50)
    }
}

/// One figure.
#[derive(Debug, Serialize)]
pub struct Figure {
    /// Which of the goals.
    pub goal: &'static str,
    /// What was measured.
    pub what: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// The goal for it; absent for a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Over how many samples.
    pub samples: usize,
}

impl Figure {
    /// A figure with its goal, or without one for a comparison.
    pub fn new(
        goal: &'static str,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
        at_most: Option<f64>,
    ) -> Self {
        Self { goal, what: what.into(), value, unit, at_most, samples: 1 }
    }

    /// Over so many samples.
    #[must_use]
    pub fn over(self, samples: usize) -> Self {
        Self { samples, ..self }
    }
}

/// Says how far a long measurement is, on standard error, every few seconds.
#[derive(Debug)]
pub struct Progress {
    what: String,
    of: usize,
    began: Instant,
    said: Instant,
}

impl Progress {
    /// How often it is said.
    const EVERY: Duration = Duration::from_secs(10);

    /// A measurement of so many rounds.
    #[allow(clippy::print_stderr, reason = "a bench talks to its terminal")]
    pub fn new(what: impl Into<String>, of: usize) -> Self {
        let (what, now) = (what.into(), Instant::now());
        eprintln!("==> {what}: {of} rounds");
        Self { what, of, began: now, said: now }
    }

    /// So many rounds are done.
    #[allow(clippy::print_stderr, reason = "a bench talks to its terminal")]
    pub fn at(&mut self, done: usize) {
        if self.said.elapsed() >= Self::EVERY {
            self.said = Instant::now();
            eprintln!(
                "    {}: {done} of {}, {:.0} s",
                self.what,
                self.of,
                self.began.elapsed().as_secs_f64()
            );
        }
    }
}

/// All figures of a run.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// Prints the figure and keeps it.
    pub fn add(&mut self, figure: Figure) {
        let goal = figure.at_most.map(|most| {
            let verdict = if figure.value <= most { "met" } else { "missed" };
            format!("  (goal <= {most} {}: {verdict})", figure.unit)
        });
        println!(
            "{:<4} {:<68} {:>10.3} {}{}",
            figure.goal,
            figure.what,
            figure.value,
            figure.unit,
            goal.unwrap_or_default()
        );
        self.figures.push(figure);
    }

    /// Writes `NAME.json` into `directory`.
    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        let file = directory.join(format!("{name}.json"));
        let text = serde_json::to_string_pretty(self)?;
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(&file, text))
            .with_context(|| format!("write {}", file.display()))?;
        println!("written to {}", file.display());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut samples = Samples::default();
        assert_eq!(samples.median().to_bits(), 0f64.to_bits());
        for millis in (1..=100).rev() {
            samples.add(Duration::from_millis(millis));
        }
        assert!((samples.median() - 51.0).abs() < 1e-9);
        assert!((samples.percentile(99) - 100.0).abs() < 1e-9);
    }
}
