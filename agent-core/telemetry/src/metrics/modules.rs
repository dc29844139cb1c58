//! The metrics of modules (M11). They are taken over when somebody reads: a module that is gone has no series left.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric as Registered, Registry};

use super::{Labels, labels, one_of, saturating};
use crate::table::{self, Metric};

type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type FloatGauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// What is counted of one module, all of it since the start.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(missing_docs, reason = "each is the metric of the same name, and the table says what that means")]
pub struct ModuleNumbers {
    pub name: String,
    pub world: String,
    pub source: String,
    pub version: String,
    pub digest: String,
    pub mode: String,
    pub state: String,
    pub has_problem: bool,
    pub calls: u64,
    pub failures: Vec<(String, u64)>,
    /// By whom, which, how often.
    pub verdicts: Vec<(String, String, u64)>,
    /// Which, what came of it, how often.
    pub actions: Vec<(String, String, u64)>,
    pub loads: u64,
    pub last_seconds: f64,
    pub total_seconds: f64,
    pub memory_peak: u64,
    pub lines_dropped: u64,
    pub series_refused: u64,
    pub counters: Vec<(String, u64)>,
    pub gauges: Vec<(String, f64)>,
}

/// The families.
#[derive(Debug)]
pub(super) struct ModuleMetrics {
    info: Gauges,
    state: Gauges,
    problem: Gauges,
    calls: Counters,
    failures: Counters,
    verdicts: Counters,
    actions: Counters,
    loads: Counters,
    last_seconds: FloatGauges,
    seconds: Family<Labels, Counter<f64, AtomicU64>>,
    memory: Gauges,
    lines_dropped: Counters,
    series_refused: Counters,
    counter: Counters,
    gauge: FloatGauges,
    stray: Gauge,
}

impl ModuleMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            info: family(registry, table::MODULE_INFO),
            state: family(registry, table::MODULE_STATE),
            problem: family(registry, table::MODULE_PROBLEM),
            calls: family(registry, table::MODULE_CALLS),
            failures: family(registry, table::MODULE_FAILURES),
            verdicts: family(registry, table::MODULE_VERDICTS),
            actions: family(registry, table::MODULE_ACTIONS),
            loads: family(registry, table::MODULE_LOADS),
            last_seconds: family(registry, table::MODULE_LAST_SECONDS),
            seconds: family(registry, table::MODULE_SECONDS),
            memory: family(registry, table::MODULE_MEMORY),
            lines_dropped: family(registry, table::MODULE_LINES_DROPPED),
            series_refused: family(registry, table::MODULE_SERIES_REFUSED),
            counter: family(registry, table::MODULE_COUNTER),
            gauge: family(registry, table::MODULE_GAUGE),
            stray: family(registry, table::MODULES_STRAY),
        }
    }

    /// Takes over what there is now; `states` are all states.
    pub(super) fn take_over(&self, modules: &[ModuleNumbers], states: &[&'static str], stray: usize) {
        self.clear();
        self.stray.set(saturating(stray));
        for module in modules {
            self.one(module, states);
        }
    }

    fn one(&self, module: &ModuleNumbers, states: &[&'static str]) {
        let name = module.name.as_str();
        let info = [name, &module.world, &module.source, &module.version, &module.digest, &module.mode];
        self.info.get_or_create(&labels(table::MODULE_INFO, &info)).set(1);
        one_of(&self.state, table::MODULE_STATE, &[name], &module.state, states);
        let own = |metric| labels(metric, &[name]);
        self.problem.get_or_create(&own(table::MODULE_PROBLEM)).set(module.has_problem.into());
        self.memory.get_or_create(&own(table::MODULE_MEMORY)).set(saturating(module.memory_peak));
        self.last_seconds.get_or_create(&own(table::MODULE_LAST_SECONDS)).set(module.last_seconds);
        let seconds = self.seconds.get_or_create(&own(table::MODULE_SECONDS));
        seconds.inner().store(module.total_seconds.to_bits(), Ordering::Relaxed);
        drop(seconds);
        for (family, metric, number) in [
            (&self.calls, table::MODULE_CALLS, module.calls),
            (&self.loads, table::MODULE_LOADS, module.loads),
            (&self.lines_dropped, table::MODULE_LINES_DROPPED, module.lines_dropped),
            (&self.series_refused, table::MODULE_SERIES_REFUSED, module.series_refused),
        ] {
            count(family, &own(metric), number);
        }
        for (kind, number) in &module.failures {
            count(&self.failures, &labels(table::MODULE_FAILURES, &[name, kind]), *number);
        }
        for (by, verdict, number) in &module.verdicts {
            count(&self.verdicts, &labels(table::MODULE_VERDICTS, &[name, by, verdict]), *number);
        }
        for (action, outcome, number) in &module.actions {
            count(&self.actions, &labels(table::MODULE_ACTIONS, &[name, action, outcome]), *number);
        }
        for (series, number) in &module.counters {
            count(&self.counter, &labels(table::MODULE_COUNTER, &[name, series]), *number);
        }
        for (series, number) in &module.gauges {
            self.gauge.get_or_create(&labels(table::MODULE_GAUGE, &[name, series])).set(*number);
        }
    }

    fn clear(&self) {
        for gauges in [&self.info, &self.state, &self.problem, &self.memory] {
            gauges.clear();
        }
        for counters in [
            &self.calls,
            &self.failures,
            &self.verdicts,
            &self.actions,
            &self.loads,
            &self.lines_dropped,
            &self.series_refused,
            &self.counter,
        ] {
            counters.clear();
        }
        self.last_seconds.clear();
        self.gauge.clear();
        self.seconds.clear();
    }
}

fn count(family: &Counters, labels: &Labels, number: u64) {
    family.get_or_create(labels).inner().store(number, Ordering::Relaxed);
}

fn family<M: Registered + Clone + Default>(registry: &mut Registry, metric: Metric) -> M {
    let handle = M::default();
    registry.register(metric.name, metric.help, handle.clone());
    handle
}
