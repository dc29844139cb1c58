//! A behaviour of world `conflist-reassert` that asks for what it may not have, as its settings say.

use aether_module::Behaviour;
use aether_module::behaviour::conflist::{edit, view};
use aether_module::behaviour::{Event, Fault, Plan, again_since, events, refused};
use serde::Deserialize;

/// What it is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What to do.
    pub act: String,
}

/// The module.
#[derive(Debug)]
pub struct Rogue(Settings);

impl Behaviour for Rogue {
    type Settings = Settings;

    fn new(settings: Settings, _: Option<Vec<u8>>) -> Result<Self, Fault> {
        Ok(Self(settings))
    }

    fn run(&mut self, events: &[Event]) -> Result<Plan, Fault> {
        if self.0.act == "fall-at-news" {
            return fall_at_news(events);
        }
        let files = view::list_files();
        let active = files.iter().find(|file| file.active);
        let Some(active) = active else { return Ok(again_since(5000, "no file")) };
        let bytes = view::read(&active.name).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let replace = |name: &str, text: &str| edit::replace(name, &active.digest, text.as_bytes());
        let asked = match self.0.act.as_str() {
            "alter-foreign" => replace(&active.name, &text.replace("flannel", "evil")),
            "ours-first" => {
                let ours = String::from_utf8(view::wanted_entry().unwrap_or_default()).unwrap_or_default();
                let first = format!("\"plugins\": [\n    {ours},");
                replace(&active.name, &text.replace("\"plugins\": [", &first))
            }
            "swap-foreign" => {
                let swapped = text
                    .replace("flannel", "x")
                    .replace("portmap", "flannel")
                    .replace("\"x\"", "\"portmap\"");
                replace(&active.name, &swapped)
            }
            "other-file" => replace("99-other.conflist", &text),
            "garbage" => replace(&active.name, "{"),
            "unchanged" => replace(&active.name, &text),
            "flood" => (0..1000).map(|_| edit::restore_plugin()).collect::<Result<Vec<_>, _>>().map(|_| 0),
            "event" => events::raise("SomethingElse", "x", "y").map(|()| 0),
            _ => edit::restore_plugin(),
        };
        let said = match asked {
            Ok(_) => "staged".to_owned(),
            Err(refusal) => refused(&refusal),
        };
        Ok(again_since(5000, said))
    }
}

/// Asks for something when it is enabled, and for a call long after; traps at the first thing that it is told.
fn fall_at_news(events: &[Event]) -> Result<Plan, Fault> {
    assert!(!events.iter().any(|event| event.kind == "changed"), "this is news");
    if events.is_empty() {
        edit::restore_plugin().map_err(|refusal| Fault::Transient(refused(&refusal)))?;
    }
    Ok(again_since(3_600_000, "staged"))
}

aether_module::export_behaviour!(Rogue);
