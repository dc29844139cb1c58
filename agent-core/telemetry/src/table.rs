//! Every metric's name, kind, labels and meaning, once (O01). A name is API: it is never reused for another meaning.

/// What a metric counts like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; exposed with the suffix `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
    /// A distribution; exposed with `_bucket`, `_sum` and `_count`.
    Histogram,
}

impl Kind {
    /// The kind as Prometheus names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name, without the suffix that the kind adds.
    pub name: &'static str,
    /// The kind.
    pub kind: Kind,
    /// Names of its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says; no full stop at the end, the exposition adds one.
    pub help: &'static str,
}

impl Metric {
    /// The name as it stands in the exposition.
    pub fn exposed(&self) -> String {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{suffix}", self.name)
    }
}

macro_rules! table {
    ($($id:ident = $kind:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $id: Metric = Metric { name: $name, kind: Kind::$kind, labels: &$labels, help: $help };
        )*
        /// All of them, in the order of the page.
        pub const TABLE: &[Metric] = &[$($id),*];
    };
}

table! {
    BUILD_INFO = Gauge "aether_build_info" ["version"],
        "Always 1; the label names the agent's version";
    START_TIME = Gauge "aether_start_time_seconds" [],
        "When this agent started, in seconds since 1970";
    ROLE = Gauge "aether_agent_role" ["role"],
        "1 for the role this agent has on its node (owner: holds the node lock; standby: waits for it), 0 for the other";
    SERVING = Gauge "aether_cni_serving" [],
        "1 while this agent answers on the CNI socket, else 0";

    CNI_REQUESTS = Counter "aether_cni_requests" ["command", "code"],
        "CNI calls that came to their end, by command and gRPC status code";
    CNI_DURATION = Histogram "aether_cni_request_duration_seconds" ["command"],
        "Time from a CNI call's arrival to its end";
    CNI_IN_FLIGHT = Gauge "aether_cni_adds_in_flight" [],
        "ADDs that have arrived and have not ended yet";
    CNI_REFUSED = Counter "aether_cni_peers_refused" [],
        "Connections to the CNI socket that were closed because the caller is not root";

    RECORDS = Gauge "aether_pod_records" [],
        "Attachments that are recorded";
    UNUSABLE = Gauge "aether_state_files_unusable" [],
        "Records and tombstones that cannot be used: damaged, foreign, or of a newer format (`aetherctl pods` names them)";
    QUARANTINED = Counter "aether_state_files_quarantined" [],
        "Damaged records and tombstones that were put aside";
    OTHER_BOOT = Counter "aether_pod_records_of_other_boots" [],
        "Records of another boot that were dropped";
    TOMBSTONES_APPLIED = Counter "aether_tombstones_applied" [],
        "DELs that the plugin wrote down while no agent answered, and that were applied since";
    TOMBSTONES_DROPPED = Counter "aether_tombstones_dropped" [],
        "Tombstones of another boot that were dropped";
    TOMBSTONES_FAILED = Counter "aether_tombstone_passes_failed" [],
        "Passes over the tombstones that failed";
    SWEEPS = Counter "aether_sweeps" ["outcome"],
        "Sweeps for records without a network namespace: done, held (the breaker waits for further sweeps to agree), failed";
    SWEPT = Counter "aether_swept_records" [],
        "Records that a sweep removed";
    WRITES_FAILED = Counter "aether_state_writes_failed" [],
        "Writes and removals in the state directory that failed (the log says where and why)";

    CHAIN_STATE = Gauge "aether_chain_state" ["state"],
        "1 for the state of the list that the runtime would load, 0 for the others";
    CHAIN_CHECKS = Counter "aether_chain_checks" ["cause"],
        "Looks at the list, by cause: start, event, poll, asked (after a repair)";
    CHAIN_CHECKED = Gauge "aether_chain_checked_timestamp_seconds" [],
        "When the list was last looked at, in seconds since 1970";
    CHAIN_WATCH_MODE = Gauge "aether_chain_watch_mode" ["mode"],
        "1 for how changes of the list are noticed: inotify (at once), poll (inotify cannot be had; within the poll interval)";
    CHAIN_WATCH_LOST = Counter "aether_chain_watch_lost" ["reason"],
        "Times that events were lost: unavailable (inotify cannot be had), overflow (its queue ran over), replaced (the directory is another one)";

    READY = Gauge "aether_ready" [],
        "1 while the node's chain lets this agent be ready, else 0 (`aetherctl conditions` says why)";
    CONDITION = Gauge "aether_condition" ["condition"],
        "1 where the condition holds, 0 where it does not, -1 where it cannot be told";
    EVENTS = Counter "aether_events" ["module", "reason"],
        "Events for a person that were raised (`aetherctl events` shows them)";

    MODULE_INFO = Gauge "aether_module_info" ["module", "world", "source", "version", "digest", "mode"],
        "Always 1; the labels name what runs";
    MODULE_STATE = Gauge "aether_module_state" ["module", "state"],
        "1 for the module's state (loaded, disabled, enabled, faulted, quarantined, rejected), 0 for the others";
    MODULE_PROBLEM = Gauge "aether_module_problem" ["module"],
        "1 while something is wrong with the module's files (another version may run; `aetherctl modules` says what), else 0";
    MODULE_CALLS = Counter "aether_module_calls" ["module"],
        "Calls of the module's exports";
    MODULE_FAILURES = Counter "aether_module_failures" ["module", "kind"],
        "Calls that came to nothing, by kind: trap, deadline, memory, result, config, transient, budget, struck";
    MODULE_VERDICTS = Counter "aether_module_verdicts" ["module", "by", "verdict"],
        "Verdicts on pods: abstain, admit, admit-with, ignore, deny; by the module, or by its failure-policy where it could not answer";
    MODULE_ACTIONS = Counter "aether_module_actions" ["module", "action", "outcome"],
        "Actions that the module staged, by what came of them: done, conflict, failed, dropped";
    MODULE_LOADS = Counter "aether_module_loads" ["module"],
        "Times that a version of the module was taken";
    MODULE_LAST_SECONDS = Gauge "aether_module_last_call_seconds" ["module"],
        "How long the last call took";
    MODULE_SECONDS = Counter "aether_module_call_seconds" ["module"],
        "How long all calls took together";
    MODULE_MEMORY = Gauge "aether_module_memory_peak_bytes" ["module"],
        "The largest linear memory that any instance of the module had";
    MODULE_LINES_DROPPED = Counter "aether_module_log_lines_dropped" ["module"],
        "Log lines of the module that were over its rate";
    MODULE_SERIES_REFUSED = Counter "aether_module_series_refused" ["module"],
        "Calls of the module that named a metric series too many, or one whose name is not taken";
    MODULE_COUNTER = Counter "aether_module_counter" ["module", "name"],
        "The module's own counters";
    MODULE_GAUGE = Gauge "aether_module_gauge" ["module", "name"],
        "The module's own gauges";
    MODULES_STRAY = Gauge "aether_modules_directory_problems" [],
        "What is in the operator's directory of modules and no module (`aetherctl modules` names it)";

    ADDRESS_SERVED = Gauge "aether_metrics_address_served" [],
        "1 while the metrics address is served by this agent, 0 while it is not (standby, no address, or the port is taken)";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn o01_names_are_unique_prefixed_and_without_a_suffix_that_the_kind_adds() {
        let names: BTreeSet<_> = TABLE.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for metric in TABLE {
            let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(metric.name.starts_with("aether_") && metric.name.chars().all(legal), "{}", metric.name);
            assert!(!metric.name.ends_with("_total"), "{}", metric.name);
            assert!(!metric.help.is_empty() && !metric.help.ends_with('.'), "{}", metric.name);
        }
    }
}
