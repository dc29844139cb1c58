//! What modules see of the node's list, from what the watcher observed: pure.

use aether_chain_watch::Observation;
use aether_domain::chain::State;
use aether_module_host::ports::{Binary, ConflistFile, ConflistView};

/// The view of an observation. Cheap: bytes are shared, not copied.
pub(crate) fn of(seen: &Observation) -> ConflistView {
    let files = seen.files.iter().map(|file| ConflistFile {
        name: file.name.clone(),
        digest: file.digest.clone(),
        bytes: file.bytes.clone(),
        uid: file.uid,
        modified: file.modified,
    });
    ConflistView {
        state: seen.state.name().to_owned(),
        detail: detail(&seen.state).to_owned(),
        file: seen.file.clone(),
        binary: match seen.binary {
            aether_chain_watch::Binary::Right => Binary::Right,
            aether_chain_watch::Binary::Wrong { .. } => Binary::Wrong,
            aether_chain_watch::Binary::Missing => Binary::Missing,
            aether_chain_watch::Binary::Unknown { .. } => Binary::Unknown,
        },
        files: files.collect(),
        wanted: seen.wanted.as_deref().map(<[u8]>::to_vec),
    }
}

/// How the chain differs, or why it cannot be told.
pub(crate) fn detail(state: &State) -> &str {
    match state {
        State::Drifted { how } => how,
        State::Invalid { why } | State::Unknown { why } => why,
        State::Chained | State::Stripped | State::NoList | State::Uninstalled => "",
    }
}
