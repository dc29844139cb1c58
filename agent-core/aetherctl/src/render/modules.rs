//! Modules, events and conditions as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use aether_api::admin::{self, ConditionsResponse, EventsResponse, ModulesResponse};
use serde::Serialize;

use crate::table::{columns, printable};

/// The modules.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Modules {
    role: String,
    directory: String,
    #[serde(rename = "modules")]
    all: Vec<Module>,
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Module {
    name: String,
    world: String,
    state: String,
    source: String,
    version: String,
    digest: String,
    mode: String,
    on_failure: String,
    problem: String,
    note: String,
    last_error: String,
    calls: u64,
    failures: BTreeMap<String, u64>,
    verdicts: Vec<Verdicts>,
    actions: Vec<Actions>,
    loads: u64,
    last_duration_ns: u64,
    total_duration_ns: u64,
    memory_peak: u64,
    log_lines_dropped: u64,
    counters: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdicts {
    by: String,
    verdict: String,
    count: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Actions {
    action: String,
    outcome: String,
    count: u64,
}

impl From<ModulesResponse> for Modules {
    fn from(answer: ModulesResponse) -> Self {
        let modules = answer.modules.into_iter().map(Module::from).collect();
        Self { role: answer.role, directory: answer.directory, all: modules, problems: answer.problems }
    }
}

impl From<admin::Module> for Module {
    fn from(module: admin::Module) -> Self {
        let verdicts = |one: admin::Verdicts| Verdicts { by: one.by, verdict: one.verdict, count: one.count };
        let actions =
            |one: admin::Actions| Actions { action: one.action, outcome: one.outcome, count: one.count };
        Self {
            name: module.name,
            world: module.world,
            state: module.state,
            source: module.source,
            version: module.version,
            digest: module.digest,
            mode: module.mode,
            on_failure: module.on_failure,
            problem: module.problem,
            note: module.note,
            last_error: module.last_error,
            calls: module.calls,
            failures: module.failures.into_iter().collect(),
            verdicts: module.verdicts.into_iter().map(verdicts).collect(),
            actions: module.actions.into_iter().map(actions).collect(),
            loads: module.loads,
            last_duration_ns: module.last_duration_ns,
            total_duration_ns: module.total_duration_ns,
            memory_peak: module.memory_peak,
            log_lines_dropped: module.log_lines_dropped,
            counters: module.counters.into_iter().collect(),
            gauges: module.gauges.into_iter().collect(),
        }
    }
}

/// A digest is told apart by fewer characters than it has; `-o json` has them all.
const SHORT_DIGEST: usize = 12;

impl Modules {
    /// One line a module, then what there is to say about each.
    pub(crate) fn table(&self) -> String {
        let rows: Vec<[String; 9]> = self.all.iter().map(Module::row).collect();
        let heading =
            ["MODULE", "WORLD", "STATE", "SOURCE", "VERSION", "DIGEST", "CALLS", "FAULTS", "LAST CALL"];
        let mut text = columns(heading, &rows);
        let _ = writeln!(
            text,
            "\n{} module(s) of this agent, the node's {}; the operator's are read from {}",
            rows.len(),
            printable(&self.role),
            printable(&self.directory)
        );
        for module in &self.all {
            module.said(&mut text);
        }
        for problem in &self.problems {
            let _ = writeln!(text, "no module: {}", printable(problem));
        }
        text
    }
}

impl Module {
    fn row(&self) -> [String; 9] {
        let state = if self.mode == "audit" { format!("{} (audit)", self.state) } else { self.state.clone() };
        [
            self.name.clone(),
            self.world.clone(),
            state,
            self.source.clone(),
            self.version.clone(),
            self.digest.chars().take(SHORT_DIGEST).collect(),
            self.calls.to_string(),
            self.failures.values().sum::<u64>().to_string(),
            format!("{}.{:03} ms", self.last_duration_ns / 1_000_000, self.last_duration_ns / 1000 % 1000),
        ]
    }

    fn said(&self, text: &mut String) {
        for (what, said) in
            [("problem", &self.problem), ("note", &self.note), ("last error", &self.last_error)]
        {
            if !said.is_empty() {
                let _ = writeln!(text, "{}: {what}: {}", printable(&self.name), printable(said));
            }
        }
        let verdicts = self.verdicts.iter().map(|one| {
            let by = if one.by == "module" { String::new() } else { format!(" (by the {})", one.by) };
            format!("{} {}{by}", one.count, one.verdict)
        });
        let verdicts: Vec<String> = verdicts.collect();
        if !verdicts.is_empty() {
            let _ =
                writeln!(text, "{}: verdicts: {}", printable(&self.name), printable(&verdicts.join(", ")));
        }
        let actions: Vec<String> =
            self.actions.iter().map(|one| format!("{} {} {}", one.count, one.action, one.outcome)).collect();
        if !actions.is_empty() {
            let _ = writeln!(text, "{}: actions: {}", printable(&self.name), printable(&actions.join(", ")));
        }
    }
}

/// The events.
#[derive(Debug, Serialize)]
pub(crate) struct Events {
    events: Vec<Event>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    module: String,
    reason: String,
    about: String,
    message: String,
    first: u64,
    last: u64,
    count: u64,
}

impl From<EventsResponse> for Events {
    fn from(answer: EventsResponse) -> Self {
        let event = |one: admin::Event| Event {
            module: one.module,
            reason: one.reason,
            about: one.about,
            message: one.message,
            first: one.first,
            last: one.last,
            count: one.count,
        };
        Self { events: answer.events.into_iter().map(event).collect() }
    }
}

impl Events {
    /// One line an event; `now` in seconds since 1970.
    pub(crate) fn table(&self, now: u64) -> String {
        let row = |event: &Event| {
            [
                format!("{} s ago", now.saturating_sub(event.last)),
                event.count.to_string(),
                event.reason.clone(),
                event.about.clone(),
                event.module.clone(),
                event.message.clone(),
            ]
        };
        let rows: Vec<[String; 6]> = self.events.iter().map(row).collect();
        columns(["LAST", "TIMES", "REASON", "ABOUT", "MODULE", "MESSAGE"], &rows)
    }
}

/// What readiness is made of.
#[derive(Debug, Serialize)]
pub(crate) struct Conditions {
    ready: bool,
    reason: String,
    #[serde(rename = "conditions")]
    all: Vec<Condition>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    name: String,
    state: String,
    held_ms: u64,
    reason: String,
}

impl From<ConditionsResponse> for Conditions {
    fn from(answer: ConditionsResponse) -> Self {
        let condition = |one: admin::Condition| Condition {
            name: one.name,
            state: one.state,
            held_ms: one.held_ms,
            reason: one.reason,
        };
        Self {
            ready: answer.ready,
            reason: answer.reason,
            all: answer.conditions.into_iter().map(condition).collect(),
        }
    }
}

impl Conditions {
    /// One line a condition.
    pub(crate) fn table(&self) -> String {
        let row = |one: &Condition| {
            [one.name.clone(), one.state.clone(), format!("{} s", one.held_ms / 1000), one.reason.clone()]
        };
        let rows: Vec<[String; 4]> = self.all.iter().map(row).collect();
        let mut text = columns(["CONDITION", "HOLDS", "FOR", "REASON"], &rows);
        let ready =
            if self.ready { "ready".to_owned() } else { format!("not ready: {}", printable(&self.reason)) };
        let _ = writeln!(text, "\n{ready}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m11_the_table_shows_state_calls_and_what_is_wrong_and_json_has_all() {
        let module = admin::Module {
            name: "team".to_owned(),
            world: "pod-policy".to_owned(),
            state: "enabled".to_owned(),
            mode: "audit".to_owned(),
            digest: "a".repeat(64),
            problem: "the component is not taken\u{1b}[31m".to_owned(),
            calls: 7,
            failures: [("trap".to_owned(), 2), ("deadline".to_owned(), 1)].into(),
            verdicts: vec![admin::Verdicts { by: "failure-policy".into(), verdict: "deny".into(), count: 3 }],
            last_duration_ns: 1_234_567,
            ..admin::Module::default()
        };
        let modules = Modules::from(ModulesResponse {
            modules: vec![module],
            problems: vec!["x.wasm is not taken".to_owned()],
            directory: "/etc/aether/modules".to_owned(),
            role: "owner".to_owned(),
        });
        let text = modules.table();
        for part in [
            "enabled (audit)",
            "1.234 ms",
            "team: problem: the component is not taken\\u{1b}[31m",
            "3 deny (by the failure-policy)",
            "no module: x.wasm is not taken",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let json = crate::render::json(&modules).unwrap();
        assert!(json.contains(&"a".repeat(64)) && json.contains("\"onFailure\""), "{json}");
    }
}
