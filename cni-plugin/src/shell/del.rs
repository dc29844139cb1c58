//! DEL: the agent is told, or a tombstone is left (K07). Nothing here fails.

use aether_api::cni::DelRequest;
use aether_domain::clock::{BootId, Stamp};
use aether_domain::format::Format;
use aether_domain::ids::NetworkName;
use aether_domain::key::Key;
use aether_domain::limits;
use aether_domain::text::error_chain;
use aether_domain::tombstone::Tombstone;

use crate::invocation::{Marker, Route};
use crate::shell::agent::Client;
use crate::shell::run::{Outcome, Session};
use crate::shell::tombstone;
use crate::verdict::{self, Again, Left};

impl Session {
    /// Forgets `key`.
    pub(super) fn del(
        &self,
        key: Key,
        network: Option<NetworkName>,
        request: &DelRequest,
        marker: Marker,
    ) -> Outcome {
        let caller = match self.caller() {
            Ok(caller) => caller,
            // Without a boot id no agent could tell this DEL from an older one. The sweep finds the record.
            Err(failure) => return said("lost", failure.to_string()),
        };
        let boot = BootId::new(&caller.boot_id);
        let request = DelRequest { caller: Some(caller), ..request.clone() };
        let budget = limits::DEL_DEADLINE.saturating_sub(limits::WRAP_UP);
        // Asked once: a tombstone is as good as an answer, and the rest of the chain waits.
        let answer =
            self.ask(budget, |_| Again::No, async |mut client: Client| client.del(request.clone()).await);
        let trouble = match answer {
            Ok(response) => {
                let word = if response.existed { "deleted" } else { "unknown" };
                return Outcome { document: None, word, reason: None };
            }
            Err(trouble) => trouble,
        };
        if marker == Marker::Stands {
            return Outcome { document: None, word: Route::Uninstalled.word(), reason: None };
        }
        let state_dir = &self.entry.state_dir;
        if verdict::del(&trouble, tombstone::record(state_dir, &key)) == Left::Nothing {
            return Outcome { document: None, word: "nothing-to-delete", reason: None };
        }
        let Ok(request_id) = self.id.parse() else {
            return said("lost", "the request id is unusable".to_owned());
        };
        let started = Stamp::new(boot, self.start.boottime_nanos);
        let tombstone = Tombstone { format: Format::V1, key, network, started, request_id };
        match tombstone::leave(state_dir, &tombstone) {
            Ok(()) => said("tombstone", trouble.to_string()),
            Err(error) => said("lost", format!("{trouble}; {}", error_chain(&error))),
        }
    }
}

fn said(word: &'static str, reason: String) -> Outcome {
    Outcome { document: None, word, reason: Some(reason) }
}
