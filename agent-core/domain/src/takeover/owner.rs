//! Serving: steps (3) and (4), standbys, and the look at lock and paths (T01, T05, T13).

use std::collections::BTreeSet;

use super::effect::Effect;
use super::event::{Lock, Path, Sight};
use super::machine::{Machine, Proxies};
use super::message::{Greeting, Hello, Listener, Role, ToOwner, ToStandby, common};
use super::moment::{Look, Moment, Peer};
use super::note::Note;
use super::phase::{Attached, Leaving, Owner, Phase, Told, Waited};
use super::report::Step;
use super::{Identity, Socket};
use crate::limits::{CERTIFICATE_WAIT, FOREIGN_LISTENER_LOG, LOCK_CHECK, STANDBYS_MAX};

impl Machine {
    /// Steps (3) and (4) begin when the CNI socket is served; (4) never waits for (3).
    pub(super) fn settle(&mut self, xds: Path) {
        let now = self.now;
        self.put(Effect::EnableModules);
        let added = self.report.changes.added;
        let Phase::Owner(owner) = &mut self.phase else { return };
        owner.settling.modules = Some(now);
        owner.settling.xds = xds;
        match self.config.proxies {
            Proxies::None => self.close_held(),
            // Only a successor waits, and only for what the takeover added: a lone agent has added them all (T02).
            Proxies::Served if added > 0 && self.report.took(Step::Lock).is_some() => {
                owner.settling.certificates = Some((now, now.after(CERTIFICATE_WAIT)));
                self.put(Effect::AwaitCertificates);
            }
            Proxies::Served => self.serve_proxies(),
        }
    }

    pub(super) fn certificates_ready(&mut self) {
        if let Phase::Owner(owner) = &mut self.phase
            && let Some((since, _)) = owner.settling.certificates.take()
        {
            self.done(Step::Certificates, since);
            self.serve_proxies();
        }
    }

    fn serve_proxies(&mut self) {
        let now = self.now;
        let Phase::Owner(owner) = &mut self.phase else { return };
        owner.settling.proxies = Some(now);
        owner.opening.insert(Socket::Xds);
        let (held, path) = (owner.held.clone(), owner.settling.xds);
        self.place(Socket::Xds, path, held.as_ref());
    }

    pub(super) fn modules_enabled(&mut self) {
        if let Phase::Owner(owner) = &mut self.phase
            && let Some(since) = owner.settling.modules.take()
        {
            self.done(Step::Modules, since);
        }
    }

    /// A socket is served for the first time, or anew after its path was lost: standbys get a duplicate of it.
    pub(super) fn owner_serving(&mut self, socket: Socket, identity: Identity) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        owner.opening.remove(&socket);
        owner.lost.remove(&socket);
        owner.listeners.insert(socket, identity);
        let proxies = owner.settling.proxies.take_if(|_| socket == Socket::Xds);
        self.say_serving(socket);
        if let Some(since) = proxies {
            self.done(Step::Proxies, since);
            self.close_held();
        }
        let Phase::Owner(owner) = &self.phase else { return };
        for peer in owner.peers.keys().copied().collect::<Vec<_>>() {
            self.greet(peer);
        }
    }

    fn close_held(&mut self) {
        if let Phase::Owner(owner) = &mut self.phase
            && let Some(held) = owner.held.take()
        {
            self.put(Effect::Close { batch: held.batch });
        }
    }

    pub(super) fn hear_standby(&mut self, peer: Peer, message: ToOwner) {
        let Phase::Owner(owner) = &mut self.phase else {
            self.put(Effect::Drop { peer });
            return;
        };
        match (message, owner.peers.get_mut(&peer)) {
            (ToOwner::Hello(hello), None) => self.hello_from(peer, hello),
            (ToOwner::Complete, Some(standby)) => {
                standby.told = Told::Complete;
                self.choose();
                self.standby_complete();
            }
            (ToOwner::Incomplete, Some(standby)) => {
                standby.told = Told::Incomplete;
                self.choose();
            }
            (ToOwner::Ready, Some(_)) => self.ready_from(peer),
            // Whoever has the lock on the file that the path names is the owner: have I lost mine (T01)?
            (ToOwner::Locked, Some(_)) => self.look_around(),
            // Not a word before the hello, and only one.
            (ToOwner::Hello(_), Some(_)) => {
                self.put(Effect::Drop { peer });
                self.standby_gone(peer);
            }
            (ToOwner::Complete | ToOwner::Incomplete | ToOwner::Ready | ToOwner::Locked, None) => {
                self.put(Effect::Drop { peer });
            }
        }
    }

    fn hello_from(&mut self, peer: Peer, hello: Hello) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        let full = owner.peers.len() >= STANDBYS_MAX;
        let (version, why) = match common(hello.oldest, hello.version) {
            Some(version) if !full => (version, None),
            Some(version) => (version, Some("there are too many standbys")),
            None => (0, Some("it speaks no version of the hand-over that this agent speaks")),
        };
        if let Some(why) = why {
            // It calls again ten times a second.
            let last = owner.turned_away;
            if last.is_none_or(|last| self.now.since(last) >= FOREIGN_LISTENER_LOG) {
                owner.turned_away = Some(self.now);
                self.note(Note::NotGreeted { why });
            }
            self.put(Effect::Drop { peer });
            return;
        }
        let Hello { name, started, role, .. } = hello;
        self.note(Note::Greeted { standby: name.clone() });
        owner_peers(&mut self.phase, peer, Attached { name, started, role, version, told: Told::Incomplete });
        self.greet(peer);
        if role == Role::Heir {
            self.look_around();
        }
    }

    fn greet(&mut self, peer: Peer) {
        let name = self.config.name.clone();
        let Phase::Owner(owner) = &self.phase else { return };
        let Some(version) = owner.peers.get(&peer).map(|standby| standby.version) else { return };
        let listener =
            |(socket, identity): (&Socket, &Identity)| Listener { socket: *socket, identity: *identity };
        let listeners = owner.listeners.iter().map(listener).collect();
        self.put(Effect::Greet { peer, greeting: Greeting { version, name, listeners } });
    }

    pub(super) fn standby_gone(&mut self, peer: Peer) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        if owner.peers.remove(&peer).is_none() {
            return;
        }
        if owner.chosen == Some(peer) {
            owner.chosen = None;
        }
        self.choose();
        self.leaving_without(peer);
    }

    /// The newest complete standby waits in flock (T13).
    fn choose(&mut self) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        let newest = owner.newest_complete(&BTreeSet::new());
        // Nobody is told off without a better one: that would only leave the lock unwatched.
        let Some(newest) = newest.filter(|newest| owner.chosen != Some(*newest)) else { return };
        let former = owner.chosen.replace(newest);
        let standby = owner.peers.get(&newest).map(|standby| standby.name.clone()).unwrap_or_default();
        if let Some(former) = former {
            self.put(Effect::ToStandby { peer: former, message: ToStandby::NotChosen });
        }
        self.put(Effect::ToStandby { peer: newest, message: ToStandby::Chosen });
        self.note(Note::Chosen { standby });
    }

    pub(super) fn look_around(&mut self) {
        let next = self.now.after(LOCK_CHECK);
        let look = self.look();
        if let Phase::Owner(owner) = &mut self.phase {
            owner.look = Some(look);
            owner.next_look = next;
        }
    }

    pub(super) fn owner_seen(&mut self, look: Look, sight: &Sight) {
        let Phase::Owner(owner) = &mut self.phase else { return };
        if owner.look != Some(look) {
            return;
        }
        owner.look = None;
        if sight.lock == Lock::Replaced {
            self.lock_replaced();
            return;
        }
        // Whoever takes over looks at the paths himself.
        if owner.leaving.drain().is_some() {
            return;
        }
        let mut sockets = vec![Socket::Cni, Socket::Handover];
        sockets.extend(owner.listeners.contains_key(&Socket::Xds).then_some(Socket::Xds));
        for socket in sockets {
            self.mind_path(socket, sight.path(socket));
        }
    }

    /// A path that names nothing of ours any more is bound anew; another's live socket is left alone, and named.
    fn mind_path(&mut self, socket: Socket, path: Path) {
        let now = self.now;
        let Phase::Owner(owner) = &mut self.phase else { return };
        if owner.opening.contains(&socket) {
            return;
        }
        match path {
            Path::Ours => {
                owner.lost.remove(&socket);
            }
            Path::Dead => {
                owner.stranger = None;
                owner.lost.insert(socket);
                owner.opening.insert(socket);
                self.note(Note::PathLost { socket });
                self.place(socket, Path::Dead, None);
            }
            Path::Live { pid } => {
                owner.lost.insert(socket);
                let first = owner.stranger.is_none();
                let stranger = owner.stranger.get_or_insert(Waited { since: now, said: now });
                if first || now.since(stranger.said) >= FOREIGN_LISTENER_LOG {
                    stranger.said = now;
                    let waited = now.since(stranger.since);
                    self.note(Note::ForeignListener { socket, pid, waited });
                }
            }
        }
    }

    pub(super) fn owner_time(&mut self) {
        let now = self.now;
        let Phase::Owner(owner) = &mut self.phase else { return };
        let late = owner.settling.certificates.take_if(|(_, until)| *until <= now);
        let look = owner.look.is_none() && owner.next_look <= now;
        if let Some((since, _)) = late {
            self.note(Note::CertificatesLate);
            self.done(Step::Certificates, since);
            self.serve_proxies();
        }
        if look {
            self.look_around();
        }
        self.leaving_time();
    }
}

fn owner_peers(phase: &mut Phase, peer: Peer, attached: Attached) {
    if let Phase::Owner(owner) = phase {
        owner.peers.insert(peer, attached);
    }
}

impl Owner {
    /// The newest complete standby that is not among `but`.
    pub(super) fn newest_complete(&self, but: &BTreeSet<Peer>) -> Option<Peer> {
        let fits = |(peer, standby): &(&Peer, &Attached)| {
            standby.told == Told::Complete && standby.role == Role::Standby && !but.contains(peer)
        };
        let newest = self.peers.iter().filter(fits).max_by_key(|(peer, standby)| (standby.started, **peer));
        newest.map(|(peer, _)| *peer)
    }

    pub(super) fn wake_at(&self) -> Option<Moment> {
        let look = self.look.is_none().then_some(self.next_look);
        let certificates = self.settling.certificates.map(|(_, until)| until);
        let leaving = match &self.leaving {
            Leaving::Waiting { until } => Some(*until),
            Leaving::Asking { answer_by, until, .. } => Some((*answer_by).min(*until)),
            Leaving::No | Leaving::Draining(_) | Leaving::Flushing(_) | Leaving::Looking(_) => None,
        };
        [look, certificates, leaving].into_iter().flatten().min()
    }
}
