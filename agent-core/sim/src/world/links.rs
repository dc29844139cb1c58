//! Connections between standbys and owners: each side hears the other in order, and its end last.

use std::collections::BTreeMap;

use aether_domain::takeover::message::{ToOwner, ToStandby};
use aether_domain::takeover::{Attach, Batch, Event, Peer, Socket};

use super::agent::Task;
use super::{Next, US, World};
use crate::kernel::{Pid, Sock, Waiting};

/// One connection.
#[derive(Debug, Clone)]
pub(super) struct Link {
    standby: Pid,
    attach: Attach,
    owner: Option<Pid>,
    /// What the standby said before it was accepted.
    said: Vec<ToOwner>,
    /// When the last word arrives, each way: none overtakes another.
    to_owner: u64,
    to_standby: u64,
    standby_closed: bool,
    owner_closed: bool,
}

impl World {
    /// A standby calls on `handover.sock`.
    pub(super) fn call_owner(&mut self, pid: Pid, attach: Attach, hello: ToOwner) {
        let Some(sock) = self.kernel.listening(Socket::Handover) else {
            self.hear_soon(pid, Event::AttachFailed { attach });
            return;
        };
        let id = self.number();
        let link = Link {
            standby: pid,
            attach,
            owner: None,
            said: vec![hello],
            to_owner: 0,
            to_standby: 0,
            standby_closed: false,
            owner_closed: false,
        };
        self.links.insert(id, link);
        if let Some(agent) = self.agents.get_mut(&pid) {
            agent.links.insert(attach, id);
        }
        self.enqueue(sock, Waiting::Link(id));
    }

    /// Something waits in a listener's queue: whoever accepts there is woken.
    pub(super) fn enqueue(&mut self, sock: Sock, waiting: Waiting) {
        let Some(listening) = self.kernel.sockets.get_mut(&sock) else { return };
        listening.queue.push_back(waiting);
        for pid in self.kernel.holders(sock).collect::<Vec<_>>() {
            self.wake_acceptor(pid);
        }
    }

    /// The owner has accepted a standby's connection.
    pub(super) fn link_accepted(&mut self, pid: Pid, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.owner = Some(pid);
        let (said, closed) = (std::mem::take(&mut link.said), link.standby_closed);
        for message in said {
            self.deliver_to_owner(id, Event::FromStandby { peer: Peer(id), message });
        }
        if closed {
            self.deliver_to_owner(id, Event::StandbyGone { peer: Peer(id) });
        }
    }

    pub(super) fn say_to_owner(&mut self, pid: Pid, attach: Attach, message: ToOwner) {
        let Some(id) = self.agents.get(&pid).and_then(|agent| agent.links.get(&attach)).copied() else {
            return;
        };
        let Some(link) = self.links.get_mut(&id) else { return };
        match link.owner {
            Some(_) => self.deliver_to_owner(id, Event::FromStandby { peer: Peer(id), message }),
            None => link.said.push(message),
        }
    }

    /// The owner says something; a greeting takes duplicates of its listeners along.
    pub(super) fn say_to_standby(&mut self, peer: Peer, message: ToStandby, socks: BTreeMap<Socket, Sock>) {
        let Some(link) = self.links.get(&peer.0) else { return };
        if link.owner_closed || link.standby_closed {
            return;
        }
        let (standby, attach) = (link.standby, link.attach);
        let batch = (!socks.is_empty()).then(|| Batch(self.number()));
        if let Some(batch) = batch {
            for sock in socks.values() {
                self.kernel.hold(*sock, standby);
            }
            if let Some(agent) = self.agents.get_mut(&standby) {
                agent.batches.insert(batch, socks);
            }
        }
        self.deliver_to_standby(peer.0, Event::FromOwner { attach, message, batch });
    }

    fn deliver_to_owner(&mut self, id: u64, event: Event) {
        let at = self.now + self.rng.range(5 * US, 400 * US);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.to_owner = link.to_owner.max(at);
        if let Some(owner) = link.owner {
            let at = link.to_owner;
            self.put(at, Next::Agent(owner, Task::Hear(event)));
        }
    }

    fn deliver_to_standby(&mut self, id: u64, event: Event) {
        let at = self.now + self.rng.range(5 * US, 400 * US);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.to_standby = link.to_standby.max(at);
        let (at, standby) = (link.to_standby, link.standby);
        self.put(at, Next::Agent(standby, Task::Hear(event)));
    }

    /// The standby's side is closed.
    pub(super) fn close_link(&mut self, pid: Pid, attach: Attach) {
        let Some(id) = self.agents.get_mut(&pid).and_then(|agent| agent.links.remove(&attach)) else {
            return;
        };
        self.standby_closes(id);
    }

    pub(super) fn standby_closes(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if !std::mem::replace(&mut link.standby_closed, true) && link.owner.is_some() {
            self.deliver_to_owner(id, Event::StandbyGone { peer: Peer(id) });
        }
    }

    /// The owner's side is closed, or the queue in which the connection waited is gone.
    pub(super) fn owner_closes(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else { return };
        if !std::mem::replace(&mut link.owner_closed, true) && !link.standby_closed {
            let attach = link.attach;
            self.deliver_to_standby(id, Event::OwnerGone { attach });
        }
    }

    /// A process is gone: so are its sides of all connections.
    pub(super) fn hang_up(&mut self, pid: Pid) {
        let mine: Vec<(u64, bool)> = self
            .links
            .iter()
            .filter(|(_, link)| link.standby == pid || link.owner == Some(pid))
            .map(|(id, link)| (*id, link.standby == pid))
            .collect();
        for (id, standby) in mine {
            if standby {
                self.standby_closes(id);
            } else {
                self.owner_closes(id);
            }
        }
    }

    pub(super) fn standby_holds(&self, peer: Peer) -> bool {
        self.links.get(&peer.0).is_some_and(|link| !link.standby_closed)
    }
}
