//! `aether:upstreams`: what was observed, and its flush.

use crate::action::Action;
use crate::bindings::aether::base::types::Refusal;
use crate::bindings::aether::upstreams::{edit, view};
use crate::state::State;

/// The most that one page holds.
const PAGE_MAX: usize = 256;
/// The most that one action forgets.
const FORGET_MAX: usize = 1024;

impl view::Host for State {
    fn get_summary(&mut self) -> view::Summary {
        let summary = self.ports.upstreams();
        view::Summary {
            total: summary.total,
            dirty: summary.dirty,
            oldest_dirty: summary.oldest_dirty,
            last_flush: summary.last_flush,
        }
    }

    fn page(&mut self, after: Option<String>, limit: u32) -> Vec<view::Upstream> {
        let limit = usize::try_from(limit).unwrap_or(PAGE_MAX).min(PAGE_MAX);
        let page = self.ports.upstreams_page(after.as_deref(), limit).into_iter().take(limit);
        page.map(|upstream| view::Upstream {
            name: upstream.name,
            port: upstream.port,
            first_seen: upstream.first_seen,
            last_seen: upstream.last_seen,
            hits: upstream.hits,
        })
        .collect()
    }
}

impl edit::Host for State {
    fn flush(&mut self) -> Result<u64, Refusal> {
        self.stage(Action::FlushUpstreams)
    }

    fn forget(&mut self, names: Vec<String>) -> Result<u64, Refusal> {
        if names.len() > FORGET_MAX {
            return Err(Refusal::Invalid(format!("at most {FORGET_MAX} upstreams can be forgotten at once")));
        }
        self.stage(Action::ForgetUpstreams { names })
    }
}
