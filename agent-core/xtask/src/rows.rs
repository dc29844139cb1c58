//! `tests/fixtures/rows.toml`: known failures of comparable systems, each with the test that shows that we do not share it, or
//! the reason why it does not concern us yet.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use serde::Deserialize;

    use crate::{run, source};

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rows {
        row: Vec<Row>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Row {
        id: String,
        what: String,
        #[serde(default)]
        tests: Vec<String>,
        #[serde(default)]
        reason: String,
    }

    #[test]
    fn every_row_names_tests_that_exist_or_a_reason() {
        let text = std::fs::read_to_string(run::root().join("tests/fixtures/rows.toml")).unwrap();
        let rows: Rows = toml::from_str(&text).unwrap();
        let tests: HashSet<String> = source::all().unwrap().iter().flat_map(source::Source::tests).collect();
        let mut wrong = Vec::new();
        let mut ids = BTreeSet::new();
        for row in &rows.row {
            if !ids.insert(&row.id) {
                wrong.push(format!("{}: twice", row.id));
            }
            if row.tests.is_empty() == row.reason.is_empty() {
                wrong.push(format!("{} ({}): tests, or a reason", row.id, row.what));
            }
            let missing = row.tests.iter().filter(|test| !tests.contains(*test));
            wrong.extend(missing.map(|test| format!("{}: there is no test {test}", row.id)));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(ids.len() >= 84, "rows were lost: {}", ids.len());
    }
}
