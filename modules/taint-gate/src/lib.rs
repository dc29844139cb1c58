//! Decides when the node's not-ready taint may go. [`logic`] decides; this is the glue.

pub mod logic;

use aether_module::Behaviour;
use aether_module::behaviour::node::{taint, view};
use aether_module::behaviour::{Event, Fault, Plan, again, again_since, clock, refused};
use logic::{IDLE_MS, REQUEUE_MS, Settings, Step, step};

/// The module.
#[derive(Debug)]
pub struct TaintGate {
    settings: Settings,
    /// When the removal was asked for last.
    asked_at: Option<u64>,
}

impl Behaviour for TaintGate {
    type Settings = Settings;

    fn new(settings: Settings, _: Option<Vec<u8>>) -> Result<Self, Fault> {
        Ok(Self { settings, asked_at: None })
    }

    fn run(&mut self, _: &[Event]) -> Result<Plan, Fault> {
        let now = clock::monotonic();
        let asked = self.asked_at.map(|at| now.saturating_sub(at));
        match step(&self.settings, &view::list_taints(), &view::get_readiness(), asked) {
            Step::Nothing => Ok(again(IDLE_MS)),
            Step::Wait(why) => Ok(again_since(REQUEUE_MS, why)),
            Step::Remove(ours) => {
                for ours in ours {
                    taint::remove(&ours.key, ours.effect)
                        .map_err(|refusal| Fault::Transient(refused(&refusal)))?;
                }
                self.asked_at = Some(now);
                Ok(again(REQUEUE_MS))
            }
        }
    }
}

aether_module::export_behaviour!(TaintGate);
