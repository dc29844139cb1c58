//! `aether:base`: logs, clocks, series, events.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use super::cut;
use crate::bindings::aether::base::{clock, events, log, metrics, types};
use crate::limits::TEXT_MAX;
use crate::ports::ModuleEvent;
use crate::state::State;

/// How many fields of a line are passed on.
const FIELDS_MAX: usize = 16;

impl types::Host for State {}

impl log::Host for State {
    fn emit(&mut self, level: log::Level, message: String, fields: Vec<(String, String)>) {
        let now = self.shared.now();
        let message = cut(&message, TEXT_MAX);
        if level == log::Level::Error {
            self.last_error = Some(message.to_owned());
        }
        if !self.shared.talk(|talk| talk.lines.allows(now)) {
            return;
        }
        let mut text = String::new();
        for (key, value) in fields.iter().take(FIELDS_MAX) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}={:?} ", cut(key, 64), cut(value, TEXT_MAX));
        }
        let (module, fields) = (self.shared.name.as_str(), text.trim_end());
        match level {
            log::Level::Error => tracing::error!(target: "aether_module", module, fields, "{message}"),
            log::Level::Warn => tracing::warn!(target: "aether_module", module, fields, "{message}"),
            log::Level::Info => tracing::info!(target: "aether_module", module, fields, "{message}"),
            log::Level::Debug => tracing::debug!(target: "aether_module", module, fields, "{message}"),
        }
    }

    fn enabled(&mut self, level: log::Level) -> bool {
        match level {
            log::Level::Error => tracing::enabled!(target: "aether_module", tracing::Level::ERROR),
            log::Level::Warn => tracing::enabled!(target: "aether_module", tracing::Level::WARN),
            log::Level::Info => tracing::enabled!(target: "aether_module", tracing::Level::INFO),
            log::Level::Debug => tracing::enabled!(target: "aether_module", tracing::Level::DEBUG),
        }
    }
}

impl clock::Host for State {
    fn monotonic(&mut self) -> u64 {
        u64::try_from(self.shared.now().as_millis()).unwrap_or(u64::MAX)
    }

    fn wall(&mut self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

impl metrics::Host for State {
    fn add(&mut self, name: String, by: u64) {
        self.shared.talk(|talk| talk.series.add(&name, by));
    }

    fn set(&mut self, name: String, to: f64) {
        self.shared.talk(|talk| talk.series.set(&name, to));
    }
}

impl events::Host for State {
    fn raise(&mut self, reason: String, about: String, message: String) -> Result<(), types::Refusal> {
        if !self.grant.events.contains(&reason) {
            let missing = format!("grant.events does not hold {}", cut(&reason, 64));
            return Err(types::Refusal::NotGranted(missing));
        }
        if self.ownership.generation().is_none() {
            return Err(types::Refusal::Standby);
        }
        let now = self.shared.now();
        if !self.shared.talk(|talk| talk.events.allows(now)) {
            return Err(types::Refusal::OverQuota);
        }
        self.ports.event(ModuleEvent {
            module: self.shared.name.clone(),
            reason,
            about: cut(&about, TEXT_MAX).to_owned(),
            message: cut(&message, TEXT_MAX).to_owned(),
        });
        Ok(())
    }
}
