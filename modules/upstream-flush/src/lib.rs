//! Decides when observed upstreams are written out, and which are forgotten. [`logic`] decides; this is the glue.

pub mod logic;

use aether_module::Behaviour;
use aether_module::behaviour::upstreams::{edit, view};
use aether_module::behaviour::{Event, Fault, Plan, again, clock, refused};
use logic::{FORGET_EVERY_MS, LOOK_MS, Settings, Why, flush, look_again, stale};

/// How many upstreams are looked at in one call.
const PAGE: u32 = 256;

/// The module.
#[derive(Debug)]
pub struct UpstreamFlush {
    settings: Settings,
    /// Where the search for unused ones goes on, and when it begins again.
    after: Option<String>,
    next_search: u64,
}

impl Behaviour for UpstreamFlush {
    type Settings = Settings;

    fn new(settings: Settings, _: Option<Vec<u8>>) -> Result<Self, Fault> {
        Ok(Self { settings, after: None, next_search: 0 })
    }

    fn run(&mut self, events: &[Event]) -> Result<Plan, Fault> {
        let why =
            if events.iter().any(|event| event.kind == "stopping") { Why::Stopping } else { Why::Usual };
        if why == Why::Usual {
            self.forget()?;
        }
        let summary = view::get_summary();
        if flush(&self.settings, &summary, clock::wall(), why) {
            edit::flush().map_err(|refusal| Fault::Transient(refused(&refusal)))?;
        }
        // The next page of the search does not wait for long.
        Ok(again(if self.after.is_some() { LOOK_MS } else { look_again(&summary) }))
    }
}

impl UpstreamFlush {
    /// Looks at one page, and begins again at the front after a while.
    fn forget(&mut self) -> Result<(), Fault> {
        let now = clock::monotonic();
        if self.after.is_none() && now < self.next_search {
            return Ok(());
        }
        let page = view::page(self.after.as_deref(), PAGE);
        self.after = page.last().map(|upstream| upstream.name.clone());
        if self.after.is_none() {
            self.next_search = now.saturating_add(FORGET_EVERY_MS);
        }
        let names = stale(&self.settings, &page, clock::wall());
        if !names.is_empty() {
            edit::forget(&names).map_err(|refusal| Fault::Transient(refused(&refusal)))?;
        }
        Ok(())
    }
}

aether_module::export_behaviour!(UpstreamFlush);
