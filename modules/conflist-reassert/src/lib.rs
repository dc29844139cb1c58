//! Puts the agent's entry back into the node's list, and its plugin back to its place. [`logic`] and [`fight`] decide;
//! this is the glue.

pub mod fight;
pub mod logic;

use aether_module::Behaviour;
use aether_module::behaviour::conflist::{edit, view};
use aether_module::behaviour::{Event, Fault, Plan, again, again_since, clock, events, metrics, refused};
use fight::Moment;
use logic::{File, LOOK_MS, Plugin, Reassert, Seen, Step};
use serde::Deserialize;

/// After how long it is looked again where an action failed; each further failure in a row doubles it, up to the longest.
const FAILED_MS: u32 = 1000;
const FAILED_MAX_MS: u32 = 8000;

/// There are none.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {}

/// The module.
#[derive(Debug, Default)]
pub struct ConflistReassert {
    reassert: Reassert,
    under_way: Option<UnderWay>,
    /// How many actions in a row were not done.
    failures: u32,
}

/// A repair on its way.
#[derive(Debug)]
struct UnderWay {
    ticket: u64,
    asked: Moment,
    file: String,
    bytes: Vec<u8>,
}

impl Behaviour for ConflistReassert {
    type Settings = Settings;

    fn new(_: Settings, _: Option<Vec<u8>>) -> Result<Self, Fault> {
        Ok(Self::default())
    }

    fn run(&mut self, events: &[Event]) -> Result<Plan, Fault> {
        let failed = self.outcomes(events);
        if events.iter().any(|event| event.kind == "stopping") {
            return Ok(again(LOOK_MS));
        }
        if let Some(why) = failed
            && !events.iter().any(|event| event.kind == "changed")
        {
            let pause = FAILED_MS.saturating_mul(1 << (self.failures - 1).min(8)).min(FAILED_MAX_MS);
            return Ok(again_since(pause, why));
        }
        let seen = look();
        if seen.plugin == Plugin::ToRestore {
            edit::restore_plugin().map_err(|refusal| Fault::Transient(refused(&refusal)))?;
        }
        let (step, fight) = self.reassert.look(&seen);
        if let (Some(fight), Some(file)) = (&fight, &seen.file) {
            metrics::add("fights", 1);
            // Refused where too many were raised: the note below says it too.
            let _ = events::raise("ConflistFight", &file.name, &fight.message);
        }
        self.act(step, &seen)
    }
}

impl ConflistReassert {
    /// Takes in what came of earlier actions; says why one failed.
    fn outcomes(&mut self, events: &[Event]) -> Option<String> {
        let mut failed = None;
        for event in events.iter().filter(|event| event.kind == "outcome") {
            let under_way = self.under_way.take_if(|repair| Some(repair.ticket) == event.ticket);
            if event.about != "done" {
                // What was read is no longer so, or it cannot be written: looked at again, but not at once, so that a
                // view that lags behind does not make this a loop.
                self.failures = self.failures.saturating_add(1);
                failed = Some(event.detail.clone());
                continue;
            }
            self.failures = 0;
            if let Some(UnderWay { asked, file, bytes, .. }) = under_way {
                metrics::add("repairs", 1);
                self.reassert.repaired(asked, now(), &file, &bytes);
            }
        }
        failed
    }

    fn act(&mut self, step: Step, seen: &Seen) -> Result<Plan, Fault> {
        let transient = |refusal| Fault::Transient(refused(&refusal));
        match (step, &seen.file) {
            (Step::Replace { bytes }, Some(file)) => {
                let ticket = edit::replace(&file.name, &file.digest, &bytes).map_err(transient)?;
                self.under_way = Some(UnderWay { ticket, asked: seen.now, file: file.name.clone(), bytes });
                Ok(again(LOOK_MS))
            }
            (Step::Derive, Some(file)) => {
                let ticket = edit::derive(&file.name, &file.digest).map_err(transient)?;
                let (file, bytes) = (file.name.clone(), Vec::new());
                self.under_way = Some(UnderWay { ticket, asked: seen.now, file, bytes });
                Ok(again(LOOK_MS))
            }
            (Step::Wait(wait), _) => {
                let note = format!("a fight: {} repairs in a row were undone", self.reassert.undone());
                Ok(again_since(u32::try_from(wait).unwrap_or(LOOK_MS), note))
            }
            (Step::Cannot(why), _) => Ok(again_since(LOOK_MS, why)),
            (Step::Leave | Step::Replace { .. } | Step::Derive, _) => Ok(again(LOOK_MS)),
        }
    }
}

fn look() -> Seen {
    let chain = view::get_chain();
    let info = view::list_files().into_iter().find(|info| Some(&info.name) == chain.file.as_ref());
    let repairable = chain.state == "stripped" || chain.state == "drifted";
    // The bytes cross only when they are needed: mostly the list is right.
    let file = info.filter(|_| repairable).and_then(|info| {
        let bytes = view::read(&info.name).ok()?;
        Some(File { name: info.name, digest: info.digest, bytes, uid: info.uid, modified: info.modified })
    });
    let plugin = match view::get_binary() {
        view::Binary::Wrong | view::Binary::Missing if chain.state != "uninstalled" => Plugin::ToRestore,
        _ => Plugin::LeftAlone,
    };
    Seen {
        state: chain.state,
        detail: chain.detail,
        file,
        wanted: if repairable { view::wanted_entry() } else { None },
        plugin,
        now: now(),
    }
}

fn now() -> Moment {
    Moment { monotonic: clock::monotonic(), wall: clock::wall() }
}

aether_module::export_behaviour!(ConflistReassert);
