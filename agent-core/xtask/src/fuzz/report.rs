//! What a run of the engine came to, from what it printed.

use std::path::{Path, PathBuf};

use super::shown;

/// How one target ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    target: String,
    /// How many inputs were run.
    pub(super) executions: u64,
    /// How many edges of the code were reached.
    edges: u64,
    /// How many inputs are worth keeping.
    kept: u64,
    /// What was found.
    pub(super) finding: Option<Finding>,
}

/// A panic, a hang, too much memory; or an engine that cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// What it says.
    what: String,
    /// The input, where the engine wrote one.
    input: Option<PathBuf>,
    log: PathBuf,
}

impl Outcome {
    /// Reads libFuzzer's output.
    pub(super) fn read(target: &str, text: &str, succeeded: bool, log: &Path) -> Self {
        let last = |word: &str| {
            let after = text.rsplit_once(word)?.1.trim_start();
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().ok()
        };
        // Without its closing lines, the last input that it spoke of.
        let spoken = || last("\n#");
        Self {
            target: target.to_owned(),
            executions: last("stat::number_of_executed_units:").or_else(spoken).unwrap_or(0),
            edges: last(" cov: ").unwrap_or(0),
            kept: last(" corp: ").unwrap_or(0),
            finding: (!succeeded).then(|| Finding::read(text, log)),
        }
    }
}

impl Finding {
    fn read(text: &str, log: &Path) -> Self {
        let input = text.lines().find_map(|line| line.split_once("Test unit written to "));
        let mut lines = text.lines();
        let panicked = lines.find(|line| line.contains("panicked at"));
        let what = match panicked {
            Some(at) => format!("{} {}", at.trim(), lines.next().unwrap_or_default().trim()),
            None => text
                .lines()
                .rfind(|line| line.contains("ERROR"))
                .unwrap_or("the engine ended and does not say why")
                .to_owned(),
        };
        Self { what, input: input.map(|(_, path)| path.trim().into()), log: log.to_owned() }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:<9} {:>12} executions {:>7} edges {:>6} inputs kept  ",
            self.target, self.executions, self.edges, self.kept
        )?;
        let Some(finding) = &self.finding else { return f.write_str("no finding") };
        write!(f, "FINDING: {}\n          the log: {}", finding.what, shown(&finding.log))?;
        if let Some(input) = &finding.input {
            let input = shown(input);
            write!(f, "\n          again: cargo xtask fuzz --target {} --input {input}", self.target)?;
            write!(f, "\n          for good: put it into tests/fuzz/corpus/{}/", self.target)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: &str = "INFO: seed corpus: files: 9\n#10\tINITED cov: 20 ft: 30 corp: 9/3Kb exec/s: 0 rss: 50Mb\n\
        #4096\tDONE   cov: 123 ft: 456 corp: 78/9Kb lim: 4096 exec/s: 40 rss: 60Mb\nDone 4096 runs in 3 second(s)\n\
        stat::number_of_executed_units: 4096\n";
    const PANIC: &str = "#10\tINITED cov: 20 ft: 30 corp: 9/3Kb\n#512\tNEW    cov: 21 ft: 31 corp: 10/3Kb\n\n\
        thread '<unnamed>' panicked at tests/fuzz/src/targets/list.rs:93:9:\ntwice is not once\n\
        ==7== ERROR: libFuzzer: deadly signal\nTest unit written to /t/list-crash-1\n";

    #[test]
    fn what_the_engine_prints_is_read() {
        let outcome = Outcome::read("list", DONE, true, Path::new("/l"));
        assert_eq!((outcome.executions, outcome.edges, outcome.kept), (4096, 123, 78));
        assert_eq!(outcome.finding, None);
    }

    #[test]
    fn a_finding_says_what_it_is_and_how_to_see_it_again() {
        let outcome = Outcome::read("list", PANIC, false, Path::new("/l"));
        assert_eq!((outcome.executions, outcome.edges), (512, 21));
        let text = outcome.to_string();
        assert!(text.contains("list.rs:93:9: twice is not once"), "{text}");
        assert!(text.contains("cargo xtask fuzz --target list --input /t/list-crash-1"), "{text}");
        let silent = Outcome::read("list", "", false, Path::new("/l")).to_string();
        assert!(silent.contains("does not say why") && silent.contains("/l"), "{silent}");
    }
}
