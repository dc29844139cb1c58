//! A behaviour of world `taint-gate` that misbehaves as its settings say.

use aether_module::Behaviour;
use aether_module::behaviour::node::taint;
use aether_module::behaviour::node::view::TaintEffect;
use aether_module::behaviour::{Event, Fault, Plan, again_since, refused};
use serde::Deserialize;

/// What it is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What to do.
    pub act: String,
    /// The taint's key.
    #[serde(default)]
    pub key: String,
}

/// The module.
#[derive(Debug)]
pub struct Rogue {
    settings: Settings,
    calls: u64,
    /// The tickets of what it staged, and those of others that it was told of.
    own: Vec<u64>,
    foreign: Vec<u64>,
}

impl Behaviour for Rogue {
    type Settings = Settings;

    fn new(settings: Settings, _: Option<Vec<u8>>) -> Result<Self, Fault> {
        if settings.act == "config" {
            return Err(Fault::Config("this can never be".to_owned()));
        }
        Ok(Self { settings, calls: 0, own: Vec::new(), foreign: Vec::new() })
    }

    fn run(&mut self, events: &[Event]) -> Result<Plan, Fault> {
        self.calls += 1;
        self.foreign
            .extend(events.iter().filter_map(|event| event.ticket).filter(|told| !self.own.contains(told)));
        let asked = taint::remove(&self.settings.key, TaintEffect::NoSchedule);
        match self.settings.act.as_str() {
            #[allow(clippy::panic, reason = "what this guest is for")]
            "stage-then-trap" => panic!("after staging"),
            #[allow(clippy::panic, reason = "what this guest is for")]
            "third" if self.calls.is_multiple_of(3) => panic!("every third call"),
            "third" => return Ok(again_since(1, "")),
            "stage-then-fault" => return Err(Fault::Transient("not now".to_owned())),
            _ => {}
        }
        self.own.extend(asked.as_ref().ok());
        let said = match asked {
            Ok(_) if !self.foreign.is_empty() => {
                format!("told of the tickets {:?}, which are not its own", self.foreign)
            }
            Ok(_) => "staged".to_owned(),
            Err(refusal) => refused(&refusal),
        };
        Ok(again_since(5000, said))
    }
}

aether_module::export_behaviour!(Rogue);
