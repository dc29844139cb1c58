//! What is said about modules: on the admin socket, and in metrics (M11).

use aether_api::admin;
use aether_module_host::status::Status;
use aether_telemetry::metrics::ModuleNumbers;

use super::{Modules, Readiness};

/// Every module, and what is none. The role is left to whoever knows it.
pub(crate) fn modules(modules: &Modules) -> admin::ModulesResponse {
    admin::ModulesResponse {
        modules: modules.host.status().into_iter().map(module).collect(),
        problems: modules.host.problems(),
        directory: modules.directory.display().to_string(),
        role: String::new(),
    }
}

fn module(status: Status) -> admin::Module {
    let nanos = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let counts = status.counts;
    let verdicts = counts.verdicts.into_iter().map(|((by, verdict), count)| admin::Verdicts {
        by: by.to_owned(),
        verdict: verdict.to_owned(),
        count,
    });
    let actions = counts.actions.into_iter().map(|((action, outcome), count)| admin::Actions {
        action: action.to_owned(),
        outcome: outcome.to_owned(),
        count,
    });
    admin::Module {
        name: status.name.to_string(),
        world: status.world.to_owned(),
        state: status.state.to_owned(),
        source: status.source.name().to_owned(),
        version: status.version,
        digest: status.digest,
        mode: status.mode.to_owned(),
        on_failure: status.on_failure.to_owned(),
        problem: status.problem,
        note: status.note,
        last_error: status.last_error,
        calls: counts.calls,
        failures: counts.failures.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
        verdicts: verdicts.collect(),
        actions: actions.collect(),
        loads: counts.loads,
        last_duration_ns: nanos(counts.last),
        total_duration_ns: nanos(counts.total),
        memory_peak: u64::try_from(counts.memory_peak).unwrap_or(u64::MAX),
        log_lines_dropped: status.log_lines_dropped,
        counters: status.series.counters().clone().into_iter().collect(),
        gauges: status.series.gauges().clone().into_iter().collect(),
    }
}

/// The numbers of one module.
pub(crate) fn numbers(status: Status) -> ModuleNumbers {
    let counts = status.counts;
    let two = |((a, b), count): ((&str, &str), u64)| (a.to_owned(), b.to_owned(), count);
    ModuleNumbers {
        name: status.name.to_string(),
        world: status.world.to_owned(),
        source: status.source.name().to_owned(),
        version: status.version,
        digest: status.digest,
        mode: status.mode.to_owned(),
        state: status.state.to_owned(),
        has_problem: !status.problem.is_empty(),
        calls: counts.calls,
        failures: counts.failures.into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect(),
        verdicts: counts.verdicts.into_iter().map(two).collect(),
        actions: counts.actions.into_iter().map(two).collect(),
        loads: counts.loads,
        last_seconds: counts.last.as_secs_f64(),
        total_seconds: counts.total.as_secs_f64(),
        memory_peak: u64::try_from(counts.memory_peak).unwrap_or(u64::MAX),
        lines_dropped: status.log_lines_dropped,
        series_refused: status.series.refused(),
        counters: status.series.counters().clone().into_iter().collect(),
        gauges: status.series.gauges().clone().into_iter().collect(),
    }
}

/// The events that are kept.
pub(crate) fn events(modules: &Modules) -> admin::EventsResponse {
    let event = |kept: super::events::Kept| admin::Event {
        module: kept.event.module.to_string(),
        reason: kept.event.reason,
        about: kept.event.about,
        message: kept.event.message,
        first: kept.first,
        last: kept.last,
        count: kept.count,
    };
    admin::EventsResponse { events: modules.ends.events.all().into_iter().map(event).collect() }
}

/// What readiness is made of. `missing` is what the probe answers too.
pub(crate) fn conditions(modules: &Modules, missing: &[String]) -> admin::ConditionsResponse {
    let chain = match modules.ends.readiness() {
        Readiness::Ready => None,
        Readiness::NotReady(why) => Some(why),
    };
    let unready = modules.host.builtins_ready().err();
    let mut conditions: Vec<admin::Condition> = modules
        .ends
        .told()
        .into_iter()
        .map(|told| admin::Condition {
            name: told.name.to_owned(),
            state: state(told.state).to_owned(),
            held_ms: told.held_ms,
            reason: if told.name == "chained" { chain.clone().unwrap_or_default() } else { String::new() },
        })
        .collect();
    conditions.push(admin::Condition {
        name: "modules-ready".to_owned(),
        state: state(Some(unready.is_none())).to_owned(),
        held_ms: 0,
        reason: unready.unwrap_or_default(),
    });
    admin::ConditionsResponse { ready: missing.is_empty(), reason: missing.join(", "), conditions }
}

fn state(state: Option<bool>) -> &'static str {
    match state {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}
