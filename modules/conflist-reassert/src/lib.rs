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

/// There are none.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {}

/// The module.
#[derive(Debug, Default)]
pub struct ConflistReassert {
    reassert: Reassert,
    under_way: Option<UnderWay>,
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
        let plan = self.act(step, &seen)?;
        Ok(match failed {
            Some(why) if plan.note.is_empty() => Plan { note: why, ..plan },
            _ => plan,
        })
    }
}

impl ConflistReassert {
    /// Takes in what came of earlier actions; says why one failed. It is looked again at once: the host tells of failures in a
    /// row ever later (M03), which keeps a view that lags behind from making this a loop.
    fn outcomes(&mut self, events: &[Event]) -> Option<String> {
        let mut failed = None;
        for event in events.iter().filter(|event| event.kind == "outcome") {
            let under_way = self.under_way.take_if(|repair| Some(repair.ticket) == event.ticket);
            if event.about != "done" {
                failed = Some(event.detail.clone());
            } else if let Some(UnderWay { asked, file, bytes, .. }) = under_way {
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
