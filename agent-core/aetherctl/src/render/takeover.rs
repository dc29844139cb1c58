//! The last takeover as text.

use std::fmt::Write as _;

use aether_api::admin::TakeoverResponse;
use serde::Serialize;

use crate::table::{columns, printable};

/// Where the agent stands, and how it came there.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Takeover {
    role: String,
    phase: String,
    name: String,
    missing: Vec<String>,
    /// None before the agent has had the lock.
    taken: Option<Taken>,
    standbys: Vec<Standby>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    locked_ns_ago: u64,
    predecessor_flushed: bool,
    steps: Vec<Step>,
    tombstones: u64,
    added: u64,
    updated: u64,
    removed: u64,
    sockets: Vec<Placed>,
}

#[derive(Debug, Serialize)]
struct Step {
    name: String,
    ns: u64,
}

#[derive(Debug, Serialize)]
struct Placed {
    socket: String,
    how: String,
}

#[derive(Debug, Serialize)]
struct Standby {
    name: String,
    complete: bool,
    chosen: bool,
}

impl From<TakeoverResponse> for Takeover {
    fn from(answer: TakeoverResponse) -> Self {
        let step = |step: aether_api::admin::TakeoverStep| Step { name: step.name, ns: step.ns };
        let placed = |one: aether_api::admin::Placed| Placed { socket: one.socket, how: one.how };
        let standby = |one: aether_api::admin::Standby| Standby {
            name: one.name,
            complete: one.complete,
            chosen: one.chosen,
        };
        let taken = Taken {
            locked_ns_ago: answer.locked_ns_ago,
            predecessor_flushed: answer.yours,
            steps: answer.steps.into_iter().map(step).collect(),
            tombstones: answer.tombstones,
            added: answer.added,
            updated: answer.updated,
            removed: answer.removed,
            sockets: answer.placed.into_iter().map(placed).collect(),
        };
        Self {
            role: answer.role,
            phase: answer.phase,
            name: answer.name,
            missing: answer.missing,
            taken: answer.locked.then_some(taken),
            standbys: answer.standbys.into_iter().map(standby).collect(),
        }
    }
}

impl Takeover {
    /// For eyes.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} is {}", printable(&self.name), self.phase);
        if self.missing.is_empty() {
            text.push_str("ready\n");
        } else {
            let missing: Vec<_> = self.missing.iter().map(|gate| printable(gate)).collect();
            let _ = writeln!(text, "not ready: {}", missing.join(", "));
        }
        match &self.taken {
            None => text.push_str("\nit has not had the node lock\n"),
            Some(taken) => taken.table(&mut text),
        }
        if !self.standbys.is_empty() {
            text.push('\n');
            let yes = |yes| if yes { "yes" } else { "no" }.to_owned();
            let row = |one: &Standby| [one.name.clone(), yes(one.complete), yes(one.chosen)];
            let rows: Vec<_> = self.standbys.iter().map(row).collect();
            text.push_str(&columns(["STANDBY", "COMPLETE", "WAITS FOR THE LOCK"], &rows));
        }
        text
    }
}

impl Taken {
    fn table(&self, text: &mut String) {
        // Only an heir waited for the lock; a lone agent found it free.
        let came = match (self.steps.iter().any(|step| step.name == "lock"), self.predecessor_flushed) {
            (true, true) => "from an agent that had written everything and said so",
            (true, false) => "from an agent that had ended without a word",
            (false, _) => "which was free at its start",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "\nit got the node lock {} ago, {came}", seconds(self.locked_ns_ago));
        let rows: Vec<_> = self.steps.iter().map(|step| [step.name.clone(), millis(step.ns)]).collect();
        text.push_str(&columns(["STEP", "TOOK"], &rows));
        let sockets = self.sockets.iter().map(|one| format!("{} {}", printable(&one.socket), one.how));
        let _ = writeln!(text, "sockets: {}", sockets.collect::<Vec<_>>().join(", "));
        let _ = writeln!(
            text,
            "records: {} added, {} updated, {} removed since it had read them; {} tombstone(s) applied",
            self.added, self.updated, self.removed, self.tombstones
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn millis(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

#[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
fn seconds(ns: u64) -> String {
    format!("{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aether_api::admin;

    fn answer() -> TakeoverResponse {
        let step = |name: &str, ns| admin::TakeoverStep { name: name.to_owned(), ns };
        TakeoverResponse {
            role: "owner".into(),
            phase: "owner".into(),
            name: "b".into(),
            locked: true,
            locked_ns_ago: 2_500_000_000,
            yours: true,
            steps: vec![step("lock", 1_234_567), step("serve", 20_000)],
            added: 2,
            placed: vec![admin::Placed { socket: "cni".into(), how: "handed-over".into() }],
            standbys: vec![admin::Standby { name: "c".into(), complete: true, chosen: true }],
            ..TakeoverResponse::default()
        }
    }

    #[test]
    fn t05_the_last_takeover_is_shown_with_its_steps_and_what_was_reconciled() {
        let text = Takeover::from(answer()).table();
        for part in [
            "b is owner",
            "ready",
            "2.5 s ago, from an agent that had written",
            "1.235 ms",
            "cni handed-over",
            "2 added",
            "STANDBY",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        let lone = TakeoverResponse { yours: false, steps: Vec::new(), ..answer() };
        assert!(Takeover::from(lone).table().contains("free at its start"));
        let standby = TakeoverResponse { locked: false, missing: vec!["records".into()], ..answer() };
        let text = Takeover::from(standby).table();
        assert!(text.contains("not ready: records") && text.contains("has not had the node lock"), "{text}");
    }
}
