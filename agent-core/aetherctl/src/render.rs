//! Answers as text: tables for eyes, JSON for programs. Nothing here does I/O.

pub(crate) mod modules;
pub(crate) mod takeover;

use std::fmt::Write as _;

use aether_api::admin::{ChainResponse, LogLevelResponse, PodsResponse};
use serde::Serialize;
use serde_json::Value;

use crate::table::{columns, printable};

/// The recorded attachments.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pods {
    role: String,
    /// As they stand in their files. They are not read into the record's type: an agent may know more keys.
    records: Vec<Value>,
    unusable: Vec<Unusable>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Unusable {
    file: String,
    reason: String,
}

/// The chain's state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chain {
    state: String,
    detail: String,
    file: String,
    choice: String,
    plugins: Vec<String>,
    install_id: String,
    watch_mode: String,
    checked_at: u64,
    role: String,
}

/// The log level in use.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LogLevel {
    pub(crate) directives: String,
}

/// JSON with a final newline.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

impl From<PodsResponse> for Pods {
    fn from(answer: PodsResponse) -> Self {
        let as_json = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        let records = answer.records.into_iter().map(as_json).collect();
        let unusable =
            |found: aether_api::admin::Unusable| Unusable { file: found.file, reason: found.reason };
        Self { role: answer.role, records, unusable: answer.unusable.into_iter().map(unusable).collect() }
    }
}

impl From<ChainResponse> for Chain {
    fn from(answer: ChainResponse) -> Self {
        Self {
            state: answer.state,
            detail: answer.detail,
            file: answer.file,
            choice: answer.choice,
            plugins: answer.plugins,
            install_id: answer.install_id,
            watch_mode: answer.watch_mode,
            checked_at: answer.checked_at,
            role: answer.role,
        }
    }
}

impl From<LogLevelResponse> for LogLevel {
    fn from(answer: LogLevelResponse) -> Self {
        Self { directives: answer.directives }
    }
}

impl Pods {
    /// One line a record.
    pub(crate) fn table(&self) -> String {
        let mut rows: Vec<[String; 7]> = self.records.iter().map(row).collect();
        rows.sort();
        let heading = ["NAMESPACE", "POD", "INTERFACE", "ADDRESSES", "MANAGED", "NETWORK", "CONTAINER"];
        let mut text = columns(heading, &rows);
        let _ = writeln!(
            text,
            "\n{} record(s) known to this agent, the node's {}",
            rows.len(),
            printable(&self.role)
        );
        if self.role == "standby" {
            text.push_str(
                "A standby reads the records but does not follow them: ask the owner for the latest.\n",
            );
        }
        for Unusable { file, reason } in &self.unusable {
            let _ = writeln!(text, "unusable: {}: {}", printable(file), printable(reason));
        }
        text
    }
}

/// A container id is told apart by fewer characters than it has; `-o json` has them all.
const SHORT_ID: usize = 13;

fn row(record: &Value) -> [String; 7] {
    let text = |path: &str| record.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let addresses: Vec<&str> = record
        .pointer("/pod/addresses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    [
        text("/pod/namespace"),
        text("/pod/name"),
        text("/interface"),
        addresses.join(","),
        text("/managed"),
        text("/network"),
        text("/container").chars().take(SHORT_ID).collect(),
    ]
}

impl Chain {
    /// One line a fact; `now` in seconds since 1970.
    pub(crate) fn table(&self, now: u64) -> String {
        let checked = match self.checked_at {
            0 => "never".to_owned(),
            at => format!("{} s ago", now.saturating_sub(at)),
        };
        let watched = match self.watch_mode.as_str() {
            "poll" => "poll (changes are seen late: see aether_chain_watch_lost_total)",
            other => other,
        };
        let mut text = String::new();
        for (name, value) in [
            ("state", self.state.as_str()),
            ("detail", &self.detail),
            ("file", &self.file),
            ("choice", &self.choice),
            ("plugins", &self.plugins.join(", ")),
            ("install id", &self.install_id),
            ("watched by", watched),
            ("checked", &checked),
            ("role", &self.role),
        ] {
            let _ = writeln!(text, "{name:<11} {}", printable(value));
        }
        text
    }
}

#[cfg(test)]
mod tests;
