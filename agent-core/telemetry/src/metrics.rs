//! The registry: one typed handle for each metric of [`crate::table`].

mod modules;

pub use modules::ModuleNumbers;

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::table::{self, Metric};
use modules::ModuleMetrics;

/// What `/metrics` answers with as its content type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Upper bounds of a CNI call's duration, in seconds: from a record's fsync on a good disk to the longest ADD deadline.
const CALL_BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

type Labels = Vec<(&'static str, String)>;

/// The agent's metrics. Cheap to update from anywhere; [`Metrics::render`] prints them.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    role: Family<Labels, Gauge>,
    serving: Gauge,
    cni_requests: Family<Labels, Counter>,
    cni_duration: Family<Labels, Histogram, Buckets>,
    cni_in_flight: Gauge,
    cni_refused: Counter,
    records: Gauge,
    unusable: Gauge,
    quarantined: Counter,
    other_boot: Counter,
    tombstones_applied: Counter,
    tombstones_dropped: Counter,
    tombstones_failed: Counter,
    sweeps: Family<Labels, Counter>,
    swept: Counter,
    writes_failed: Counter,
    chain_state: Family<Labels, Gauge>,
    chain_checks: Family<Labels, Counter>,
    chain_checked: Gauge,
    chain_watch_mode: Family<Labels, Gauge>,
    chain_watch_lost: Family<Labels, Counter>,
    ready: Gauge,
    condition: Family<Labels, Gauge>,
    events: Family<Labels, Counter>,
    modules: ModuleMetrics,
    address_served: Gauge,
}

/// What the store counts, all of it since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the metric of the same name, and the table says what that means")]
pub struct StoreNumbers {
    pub records: usize,
    pub unusable: usize,
    pub quarantined: u64,
    pub other_boot: u64,
    pub tombstones_applied: u64,
    pub tombstones_dropped: u64,
    pub tombstones_failed: u64,
    pub sweeps_done: u64,
    pub sweeps_held: u64,
    pub sweeps_failed: u64,
    pub swept: u64,
    pub writes_failed: u64,
}

impl Metrics {
    /// A registry with every metric of the table, as of a standby that started at `started` (seconds since 1970).
    pub fn new(version: &str, started: u64) -> Self {
        let mut registry = Registry::default();
        let registry_ref = &mut registry;
        let build_info = family(registry_ref, table::BUILD_INFO);
        build_info.get_or_create(&labels(table::BUILD_INFO, &[version])).set(1);
        gauge(registry_ref, table::START_TIME).set(saturating(started));
        let metrics = Self {
            role: family(registry_ref, table::ROLE),
            serving: gauge(registry_ref, table::SERVING),
            cni_requests: counters(registry_ref, table::CNI_REQUESTS),
            cni_duration: histograms(registry_ref, table::CNI_DURATION),
            cni_in_flight: gauge(registry_ref, table::CNI_IN_FLIGHT),
            cni_refused: counter(registry_ref, table::CNI_REFUSED),
            records: gauge(registry_ref, table::RECORDS),
            unusable: gauge(registry_ref, table::UNUSABLE),
            quarantined: counter(registry_ref, table::QUARANTINED),
            other_boot: counter(registry_ref, table::OTHER_BOOT),
            tombstones_applied: counter(registry_ref, table::TOMBSTONES_APPLIED),
            tombstones_dropped: counter(registry_ref, table::TOMBSTONES_DROPPED),
            tombstones_failed: counter(registry_ref, table::TOMBSTONES_FAILED),
            sweeps: counters(registry_ref, table::SWEEPS),
            swept: counter(registry_ref, table::SWEPT),
            writes_failed: counter(registry_ref, table::WRITES_FAILED),
            chain_state: family(registry_ref, table::CHAIN_STATE),
            chain_checks: counters(registry_ref, table::CHAIN_CHECKS),
            chain_checked: gauge(registry_ref, table::CHAIN_CHECKED),
            chain_watch_mode: family(registry_ref, table::CHAIN_WATCH_MODE),
            chain_watch_lost: counters(registry_ref, table::CHAIN_WATCH_LOST),
            ready: gauge(registry_ref, table::READY),
            condition: family(registry_ref, table::CONDITION),
            events: counters(registry_ref, table::EVENTS),
            modules: ModuleMetrics::new(registry_ref),
            address_served: gauge(registry_ref, table::ADDRESS_SERVED),
            registry,
        };
        metrics.set_role("standby", &["owner", "standby"]);
        metrics
    }

    /// The exposition, as text.
    pub fn render(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, and an encoder that refused would leave what it had written.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    /// Publishes the role among all roles.
    pub fn set_role(&self, role: &str, all: &[&'static str]) {
        one_of(&self.role, table::ROLE, &[], role, all);
    }

    /// The CNI socket is answered.
    pub fn serving_began(&self) {
        self.serving.set(1);
    }

    /// The CNI socket is answered no more.
    pub fn serving_ended(&self) {
        self.serving.set(0);
    }

    /// A CNI call was answered.
    pub fn cni_answered(&self, command: &str, code: &str, took: Duration) {
        self.cni_requests.get_or_create(&labels(table::CNI_REQUESTS, &[command, code])).inc();
        self.cni_duration.get_or_create(&labels(table::CNI_DURATION, &[command])).observe(took.as_secs_f64());
    }

    /// The number of ADDs in flight.
    pub fn adds_in_flight(&self, count: usize) {
        self.cni_in_flight.set(saturating(count));
    }

    /// A connection to the CNI socket was refused.
    pub fn cni_refused(&self) {
        self.cni_refused.inc();
    }

    /// Takes over what the store has counted. It is asked when somebody reads the metrics, so nothing is counted twice.
    pub fn store(&self, numbers: &StoreNumbers) {
        self.records.set(saturating(numbers.records));
        self.unusable.set(saturating(numbers.unusable));
        for (counter, number) in [
            (&self.quarantined, numbers.quarantined),
            (&self.other_boot, numbers.other_boot),
            (&self.tombstones_applied, numbers.tombstones_applied),
            (&self.tombstones_dropped, numbers.tombstones_dropped),
            (&self.tombstones_failed, numbers.tombstones_failed),
            (&self.swept, numbers.swept),
            (&self.writes_failed, numbers.writes_failed),
        ] {
            counter.inner().store(number, Ordering::Relaxed);
        }
        for (outcome, number) in
            [("done", numbers.sweeps_done), ("held", numbers.sweeps_held), ("failed", numbers.sweeps_failed)]
        {
            let counter = self.sweeps.get_or_create(&labels(table::SWEEPS, &[outcome]));
            counter.inner().store(number, Ordering::Relaxed);
        }
    }

    /// The list was looked at: its state among all states, and when (seconds since 1970).
    pub fn chain_checked(&self, cause: &str, state: &str, all: &[&'static str], at: u64) {
        one_of(&self.chain_state, table::CHAIN_STATE, &[], state, all);
        self.chain_checks.get_or_create(&labels(table::CHAIN_CHECKS, &[cause])).inc();
        self.chain_checked.set(saturating(at));
    }

    /// How changes of the list are noticed, among all ways.
    pub fn chain_watch_mode(&self, mode: &str, all: &[&'static str]) {
        one_of(&self.chain_watch_mode, table::CHAIN_WATCH_MODE, &[], mode, all);
    }

    /// Events of the list were lost.
    pub fn chain_watch_lost(&self, reason: &str) {
        self.chain_watch_lost.get_or_create(&labels(table::CHAIN_WATCH_LOST, &[reason])).inc();
    }

    /// Whether the chain lets the agent be ready.
    pub fn ready(&self, is_ready: bool) {
        self.ready.set(is_ready.into());
    }

    /// Whether a condition holds, where that can be told.
    pub fn condition(&self, name: &str, state: Option<bool>) {
        let value = state.map_or(-1, i64::from);
        self.condition.get_or_create(&labels(table::CONDITION, &[name])).set(value);
    }

    /// An event for a person was raised.
    pub fn event(&self, module: &str, reason: &str) {
        self.events.get_or_create(&labels(table::EVENTS, &[module, reason])).inc();
    }

    /// Takes over what is known of modules, among all states, and how much in their directory is none. It is asked when
    /// somebody reads the metrics.
    pub fn modules(&self, modules: &[ModuleNumbers], states: &[&'static str], stray: usize) {
        self.modules.take_over(modules, states, stray);
    }

    /// The metrics address is served.
    pub fn address_served(&self) {
        self.address_served.set(1);
    }

    /// The metrics address is not served.
    pub fn address_left(&self) {
        self.address_served.set(0);
    }
}

#[derive(Debug, Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(CALL_BUCKETS)
    }
}

fn gauge(registry: &mut Registry, metric: Metric) -> Gauge {
    let handle = Gauge::default();
    registry.register(metric.name, metric.help, handle.clone());
    handle
}

fn counter(registry: &mut Registry, metric: Metric) -> Counter {
    let handle = Counter::default();
    registry.register(metric.name, metric.help, handle.clone());
    handle
}

fn family(registry: &mut Registry, metric: Metric) -> Family<Labels, Gauge> {
    let handle = Family::default();
    registry.register(metric.name, metric.help, handle.clone());
    handle
}

fn counters(registry: &mut Registry, metric: Metric) -> Family<Labels, Counter> {
    let handle = Family::default();
    registry.register(metric.name, metric.help, handle.clone());
    handle
}

fn histograms(registry: &mut Registry, metric: Metric) -> Family<Labels, Histogram, Buckets> {
    let handle = Family::new_with_constructor(Buckets);
    registry.register(metric.name, metric.help, handle.clone());
    handle
}

fn labels(metric: Metric, values: &[&str]) -> Labels {
    metric.labels.iter().copied().zip(values.iter().map(|value| (*value).to_owned())).collect()
}

fn one_of(
    family: &Family<Labels, Gauge>,
    metric: Metric,
    before: &[&str],
    current: &str,
    all: &[&'static str],
) {
    for name in all {
        let values = [before, &[name]].concat();
        family.get_or_create(&labels(metric, &values)).set(i64::from(*name == current));
    }
}

fn saturating<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Kind, TABLE};

    fn touched() -> Metrics {
        let metrics = Metrics::new("1.2.3", 7);
        metrics.cni_answered("ADD", "OK", Duration::from_millis(3));
        metrics.store(&StoreNumbers { records: 2, swept: 5, ..StoreNumbers::default() });
        metrics.chain_checked("poll", "chained", &["chained", "stripped"], 9);
        metrics.chain_watch_mode("poll", &["inotify", "poll"]);
        metrics.chain_watch_lost("overflow");
        metrics.condition("chained", Some(true));
        metrics.event("conflist-reassert", "ConflistFight");
        metrics.modules(&[module("team")], &["enabled", "disabled"], 1);
        metrics
    }

    fn module(name: &str) -> ModuleNumbers {
        ModuleNumbers {
            name: name.to_owned(),
            state: "enabled".to_owned(),
            failures: vec![("trap".to_owned(), 2)],
            verdicts: vec![("module".to_owned(), "deny".to_owned(), 3)],
            actions: vec![("replace-list".to_owned(), "done".to_owned(), 4)],
            total_seconds: 0.5,
            counters: vec![("repairs".to_owned(), 5)],
            gauges: vec![("share".to_owned(), 0.25)],
            ..ModuleNumbers::default()
        }
    }

    #[test]
    fn m11_a_modules_numbers_are_taken_over_and_one_that_is_gone_has_no_series_left() {
        let metrics = touched();
        let text = metrics.render();
        for series in [
            "aether_module_state{module=\"team\",state=\"enabled\"} 1",
            "aether_module_state{module=\"team\",state=\"disabled\"} 0",
            "aether_module_failures_total{module=\"team\",kind=\"trap\"} 2",
            "aether_module_verdicts_total{module=\"team\",by=\"module\",verdict=\"deny\"} 3",
            "aether_module_call_seconds_total{module=\"team\"} 0.5",
            "aether_module_counter_total{module=\"team\",name=\"repairs\"} 5",
            "aether_module_gauge{module=\"team\",name=\"share\"} 0.25",
        ] {
            assert!(text.contains(series), "{series} is not in\n{text}");
        }
        metrics.modules(&[module("other")], &["enabled"], 0);
        let text = metrics.render();
        assert!(text.contains("module=\"other\"") && !text.contains("module=\"team\""), "{text}");
    }

    #[test]
    fn o01_the_exposition_holds_exactly_the_metrics_of_the_table() {
        let text = touched().render();
        let exposed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let mut expected: Vec<String> =
            TABLE.iter().map(|metric| format!("{} {}", metric.name, metric.kind.name())).collect();
        let mut exposed: Vec<String> = exposed.into_iter().map(str::to_owned).collect();
        expected.sort();
        exposed.sort();
        assert_eq!(exposed, expected);
        for metric in TABLE {
            let name = if metric.kind == Kind::Histogram {
                format!("{}_count", metric.name)
            } else {
                metric.exposed()
            };
            let series = text.lines().find(|line| !line.starts_with('#') && line.starts_with(&name));
            let series = series.unwrap_or_else(|| panic!("{name} has no series in\n{text}"));
            for label in metric.labels {
                assert!(series.contains(&format!("{label}=\"")), "{series} has no label {label}");
            }
        }
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn o01_what_the_store_counted_is_taken_over_and_not_added_up() {
        let metrics = touched();
        metrics.store(&StoreNumbers { swept: 6, sweeps_held: 1, ..StoreNumbers::default() });
        let text = metrics.render();
        assert!(text.contains("aether_swept_records_total 6"), "{text}");
        assert!(text.contains("aether_sweeps_total{outcome=\"held\"} 1"), "{text}");
        assert!(text.contains("aether_pod_records 0"), "{text}");
    }

    #[test]
    fn o01_exactly_one_state_of_a_kind_is_1() {
        let text = touched().render();
        assert!(text.contains("aether_chain_state{state=\"chained\"} 1"), "{text}");
        assert!(text.contains("aether_chain_state{state=\"stripped\"} 0"), "{text}");
        assert!(text.contains("aether_agent_role{role=\"standby\"} 1"), "{text}");
        assert!(text.contains("aether_agent_role{role=\"owner\"} 0"), "{text}");
    }
}
