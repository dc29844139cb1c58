//! The page `agent-core/docs/metrics.md`, printed from the table.

use std::fmt::Write as _;

use crate::table::TABLE;

/// How to print the page again; it stands on the page and in the test that finds it stale.
pub const COMMAND: &str =
    "cargo run -q -p aether-telemetry --example metrics-page > agent-core/docs/metrics.md";

/// The page.
pub fn markdown() -> String {
    let mut page = format!(
        "# Metrics\n\nGenerated: do not edit. Print it again with\n\n    {COMMAND}\n\nThe agent answers `GET /metrics` \
         on its pod-local socket always (`curl --unix-socket /tmp/aether/admin.sock http://agent/metrics`), and on \
         `--metrics-addr` while it owns the node. Names, kinds and labels are stable: a name is never given another \
         meaning.\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n"
    );
    for metric in TABLE {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let name = metric.exposed();
        let _ =
            writeln!(page, "| `{name}` | {} | {} | {} |", metric.kind.name(), labels.join(", "), metric.help);
    }
    page
}
