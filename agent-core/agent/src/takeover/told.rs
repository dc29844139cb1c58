//! What is said of the agent's takeover on the admin socket.

use std::cmp::Reverse;
use std::time::Duration;

use aether_api::admin::{Placed, Standby, TakeoverResponse, TakeoverStep};
use aether_domain::takeover::{Owner, Phase, Told};

use super::Standing;

/// Everything but what is missing, which is not the machine's alone.
pub(crate) fn told(standing: &Standing) -> TakeoverResponse {
    let machine = standing.machine();
    let (phase, report) = (machine.phase(), machine.report());
    // The lock is the first thing that is had of it.
    let locked = matches!(phase, Phase::Taking(_) | Phase::Owner(_));
    let steps =
        report.steps.iter().map(|(step, took)| TakeoverStep { name: step.name().to_owned(), ns: ns(*took) });
    let placed = report.placed.iter();
    let placed =
        placed.map(|(socket, how)| Placed { socket: socket.name().to_owned(), how: how.name().to_owned() });
    TakeoverResponse {
        role: standing.role().name().to_owned(),
        phase: phase.name().to_owned(),
        name: machine.name().to_owned(),
        locked,
        locked_ns_ago: if locked { ns(standing.since(report.locked)) } else { 0 },
        yours: report.yours,
        steps: steps.collect(),
        tombstones: count(report.tombstones),
        added: count(report.changes.added),
        updated: count(report.changes.updated),
        removed: count(report.changes.removed),
        placed: placed.collect(),
        standbys: match phase {
            Phase::Owner(owner) => standbys(owner),
            Phase::New | Phase::Starting | Phase::Standby(_) | Phase::Taking(_) | Phase::Ended => Vec::new(),
        },
        missing: Vec::new(),
    }
}

fn standbys(owner: &Owner) -> Vec<Standby> {
    let mut peers: Vec<_> = owner.peers.iter().collect();
    peers.sort_by_key(|(_, standby)| Reverse(standby.started));
    let standby = |(peer, standby): (&_, &aether_domain::takeover::Attached)| Standby {
        name: standby.name.clone(),
        complete: standby.told == Told::Complete,
        chosen: owner.chosen == Some(*peer),
    };
    peers.into_iter().map(standby).collect()
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
