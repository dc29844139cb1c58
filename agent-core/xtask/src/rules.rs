//! Which rule of the contract has which tests: `agent-core/docs/behaviours.md` beside the names of all tests.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use clap::Parser;

use crate::{run, source};

/// What `rules` takes.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Fail unless every rule of these chapters has a test, e.g. `--require K,I`.
    #[arg(long, value_delimiter = ',')]
    require: Vec<String>,
    /// Print only the counts.
    #[arg(long)]
    brief: bool,
}

/// Tests by rule.
type Coverage = BTreeMap<String, Vec<String>>;

/// Prints the table.
pub(crate) fn run(args: &Args) -> Result<()> {
    let file = run::root().join("agent-core/docs/behaviours.md");
    let contract = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let coverage = coverage(&contract, &tests()?);
    print(&coverage, args.brief);
    let missing = missing(&coverage, &args.require);
    if !missing.is_empty() {
        bail!("rules without a test: {}", missing.join(", "));
    }
    Ok(())
}

fn print(coverage: &Coverage, brief: bool) {
    for (rule, tests) in coverage {
        match tests.len() {
            0 => println!("{rule}  no test yet"),
            count if brief => println!("{rule}  {count}"),
            count => {
                println!("{rule}  {count}");
                for test in tests {
                    println!("       {test}");
                }
            }
        }
    }
    let covered = coverage.values().filter(|tests| !tests.is_empty()).count();
    println!("{covered} of {} rules have tests", coverage.len());
}

fn missing(coverage: &Coverage, chapters: &[String]) -> Vec<String> {
    let wanted = |rule: &str| chapters.iter().any(|chapter| rule.starts_with(chapter.as_str()));
    let open = coverage.iter().filter(|(rule, tests)| tests.is_empty() && wanted(rule));
    open.map(|(rule, _)| rule.clone()).collect()
}

/// Every test of the workspace as `path::name`.
fn tests() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for source in source::all()? {
        names.extend(source.tests().into_iter().map(|name| format!("{}::{name}", source.path.display())));
    }
    Ok(names)
}

fn coverage(contract: &str, tests: &[String]) -> Coverage {
    let mut coverage: Coverage =
        contract.lines().filter_map(rule_of_line).map(|rule| (rule, Vec::new())).collect();
    for test in tests {
        let name = test.rsplit("::").next().unwrap_or_default();
        for rule in name.split('_').map_while(rule_of_word) {
            if let Some(list) = coverage.get_mut(&rule) {
                list.push(test.clone());
            }
        }
    }
    coverage
}

/// `- K01 text` states the rule K01.
fn rule_of_line(line: &str) -> Option<String> {
    let word = line.strip_prefix("- ")?.split_whitespace().next()?;
    (word.len() == 3 && word.starts_with(|c: char| c.is_ascii_uppercase()))
        .then(|| rule_of_word(&word.to_lowercase()))?
}

/// `k01` names the rule K01.
fn rule_of_word(word: &str) -> Option<String> {
    let mut chars = word.chars();
    let chapter = chars.next().filter(char::is_ascii_lowercase)?;
    let digits = chars.as_str();
    (digits.len() == 2 && digits.bytes().all(|b| b.is_ascii_digit()))
        .then(|| format!("{}{digits}", chapter.to_ascii_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_counts_for_every_rule_its_name_begins_with() {
        let contract = "# T\n- K01 text\n- K02 text\n- I06 text\n  - no\n";
        let tests = ["a.rs::k01_k02_x".to_owned(), "a.rs::other_k01".to_owned()];
        let coverage = coverage(contract, &tests);
        assert_eq!(coverage.len(), 3);
        assert_eq!(coverage["K01"], ["a.rs::k01_k02_x"]);
        assert_eq!(coverage["K02"], ["a.rs::k01_k02_x"]);
        assert_eq!(missing(&coverage, &["K".to_owned()]), Vec::<String>::new());
    }

    #[test]
    fn a_rule_without_a_test_is_missing() {
        let coverage = coverage("- K01 a\n- I06 b\n- I07 c\n", &[]);
        assert_eq!(missing(&coverage, &["K".to_owned(), "I".to_owned()]), ["I06", "I07", "K01"]);
    }
}
