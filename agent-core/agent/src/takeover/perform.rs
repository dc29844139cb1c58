//! Effects, one by one. What does not block is done at once, and may be answered at once.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aether_domain::limits::{MODULES_END, READ_AHEAD};
use aether_domain::pods::Presence;
use aether_domain::takeover::message::{Greeting, Hello, ToOwner, ToStandby};
use aether_domain::takeover::{
    Attach, Batch, Came, Changes, Effect, Event, Identity, Look, Note, Peer, Phase, Round, Socket, Step,
};
use aether_domain::text::error_chain;
use aether_durable::socket::{self, Bound};
use aether_handover::Connection;
use anyhow::Context as _;
use tokio::net::UnixListener;

use super::gates;
use super::repeats::Repeats;
use super::shell::{End, Shell};
use crate::run::RUN_DIR_MODE;
use crate::{metrics_http, ports};

impl Shell {
    /// Does one thing; the answer, if it is there at once.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Build => self.build(),
            Effect::TryLock => return self.try_lock(),
            Effect::WaitLock => {
                if let Err(error) = self.lock.wait() {
                    self.fail(
                        anyhow::Error::new(error).context("cannot start the thread that waits for the lock"),
                    );
                }
            }
            Effect::StopWaiting => self.lock.stop_waiting(),
            Effect::Attach { attach, hello } => return self.attach(attach, hello),
            Effect::Detach { attach } => {
                if let Some((_, connection)) = self.link.take_if(|(link, _)| *link == attach) {
                    connection.close();
                }
            }
            Effect::ToOwner { attach, message: ToOwner::Ready } => self.get_ready(attach),
            Effect::ToOwner { attach, message } => self.tell_owner(attach, &message),
            Effect::Close { batch } => self.batches.close(batch),
            Effect::Look { look } => return Some(self.look(look)),
            Effect::ApplyTombstones => self.apply_tombstones(),
            Effect::Reconcile => self.reconcile(),
            Effect::Listen { socket, batch } => return Some(self.listen(socket, batch)),
            Effect::Bind { socket } => return Some(self.bind(socket)),
            // No certificate is had from anywhere yet, and none is waited for.
            Effect::AwaitCertificates => return Some(Event::CertificatesReady),
            Effect::EnableModules => self.enable_modules(),
            Effect::Greet { peer, greeting } => self.greet(peer, greeting),
            Effect::ToStandby { peer, message } => {
                self.tell_standby(peer, &message);
                match message {
                    ToStandby::Leaving => self.flush_ahead(),
                    ToStandby::Yours => self.hand_on(),
                    ToStandby::Greeting(_) | ToStandby::Chosen | ToStandby::NotChosen => {}
                }
            }
            Effect::Drop { peer } => {
                if let Some(connection) = self.peers.remove(&peer) {
                    connection.close();
                }
            }
            Effect::Drain { round } => self.drain(round),
            Effect::TakeBack { .. } => self.take_back(),
            Effect::Flush { round } => self.flush(round),
            Effect::LookAt { peer, round } => {
                let here = self.peers.get(&peer).is_some_and(|connection| !connection.is_closed());
                let presence = if here { Presence::Here } else { Presence::Gone };
                return Some(Event::PeerSeen { peer, round, presence });
            }
            Effect::Exit { reason } => self.ends(reason),
            Effect::Note(note) => self.say(&note),
        }
        None
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.end = Some(End::Failed(error));
    }

    fn build(&mut self) {
        let (node, events, life) = (&self.node, &self.events, &self.life);
        let records = gates::records(Arc::clone(node), events.clone(), life.clone());
        let modules = gates::modules(Arc::clone(node), events.clone(), life.clone());
        let policies = gates::policies(Arc::clone(node), events.clone(), life.clone());
        self.jobs.spawn(async move {
            tokio::join!(records, modules, policies);
            Ok(None)
        });
    }

    fn try_lock(&mut self) -> Option<Event> {
        match self.lock.try_take().context("cannot have the node lock; see --run-dir") {
            Ok(true) => Some(Event::LockTaken),
            Ok(false) => Some(Event::LockHeld),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    fn attach(&mut self, attach: Attach, hello: Hello) -> Option<Event> {
        if cfg!(feature = "without-handover") {
            return Some(Event::AttachFailed { attach });
        }
        let path = self.places.path(Socket::Handover)?;
        match aether_handover::call(path, hello) {
            Ok((connection, call)) => {
                self.link = Some((attach, connection));
                let following = call.follow(attach, Arc::clone(&self.batches), self.events.clone());
                self.jobs.spawn(async move {
                    following.await;
                    Ok(None)
                });
                None
            }
            Err(error) => {
                tracing::debug!(error = %error_chain(&error), "no owner to call on");
                Some(Event::AttachFailed { attach })
            }
        }
    }

    fn tell_owner(&self, attach: Attach, message: &ToOwner) {
        if let Some((link, owner)) = &self.link
            && *link == attach
        {
            say_to(owner, message);
        }
    }

    /// The owner serves until it hears "ready": what has changed on the disk is read before that, so that little is left to read
    /// when nobody serves. A disk that takes its time is not waited for.
    fn get_ready(&mut self, attach: Attach) {
        let Some((_, owner)) = self.link.as_ref().filter(|(link, _)| *link == attach) else { return };
        let (owner, store) = (owner.clone(), self.node.store.clone());
        self.jobs.spawn(async move {
            let read = tokio::time::timeout(READ_AHEAD, store.read_ahead()).await;
            tracing::debug!(in_time = read.is_ok(), "the state directory was read ahead");
            say_to(&owner, &ToOwner::Ready);
            Ok(None)
        });
    }

    fn look(&self, look: Look) -> Event {
        let held = match self.machine.phase() {
            Phase::Standby(standby) => standby.held.as_ref(),
            Phase::Taking(taking) => taking.held.as_ref(),
            Phase::Owner(owner) => owner.held.as_ref(),
            Phase::New | Phase::Starting | Phase::Ended => None,
        };
        let held = held.into_iter().flat_map(|held| &held.listeners);
        let mut ours: std::collections::BTreeMap<Socket, Identity> =
            held.map(|listener| (listener.socket, listener.identity)).collect();
        ours.extend(self.sockets.identities());
        Event::Seen { look, sight: self.places.look(self.lock.standing(), &ours) }
    }

    fn apply_tombstones(&mut self) {
        let (store, troubles) = (self.node.store.clone(), Arc::clone(&self.troubles));
        let failed_before = matches!(self.machine.phase(), Phase::Taking(taking) if taking.failed.is_some());
        self.jobs.spawn(async move {
            Ok(Some(match store.apply_left().await {
                Ok(applied) => {
                    // Nothing of nothing, each second while what comes behind it fails, is not worth a line.
                    if applied.applied > 0 || !failed_before {
                        tracing::info!(removed = applied.removed, "applied {} tombstone(s)", applied.applied);
                    }
                    Event::TombstonesApplied { applied: applied.applied }
                }
                Err(error) => failed(Step::Tombstones, &error, &troubles),
            }))
        });
    }

    fn reconcile(&mut self) {
        let (node, troubles) = (Arc::clone(&self.node), Arc::clone(&self.troubles));
        let lone = matches!(self.machine.phase(), Phase::Taking(taking) if taking.came == Came::Lone);
        self.jobs.spawn(async move {
            node.modules.known().await;
            if lone {
                node.modules.compiled_soon().await;
            }
            Ok(Some(match node.store.own().await {
                Ok(found) => {
                    let (added, updated, removed) =
                        (found.added.len(), found.updated.len(), found.removed.len());
                    let records = node.store.count();
                    tracing::info!(added, updated, removed, "read {records} record(s)");
                    Event::Reconciled { changes: Changes { added, updated, removed } }
                }
                Err(error) => failed(Step::Reconcile, &error, &troubles),
            }))
        });
    }

    fn listen(&mut self, socket: Socket, batch: Batch) -> Event {
        let adopted = self.batches.take(batch, socket).map(|(descriptor, identity)| {
            socket::adopt(descriptor).map(|listener| Bound { listener, identity })
        });
        match adopted {
            Some(Ok(bound)) => self.serve(socket, bound),
            Some(Err(error)) => {
                tracing::warn!(?socket, %error, "the handed-over listener cannot be served");
                Event::OpenFailed { socket }
            }
            None => Event::OpenFailed { socket },
        }
    }

    fn bind(&mut self, socket: Socket) -> Event {
        if cfg!(feature = "without-handover") && socket == Socket::Handover {
            return Event::OpenFailed { socket };
        }
        open_to_all(&self.config.run_dir);
        let Some(path) = self.places.path(socket) else { return Event::OpenFailed { socket } };
        match socket::bind(path) {
            Ok(bound) => self.serve(socket, bound),
            Err(error) => {
                let error = error_chain(&error);
                if self.troubles.news(&error) {
                    tracing::error!(
                        error,
                        "a socket of the node is not served, and is tried again; see --run-dir"
                    );
                }
                Event::OpenFailed { socket }
            }
        }
    }

    fn serve(&mut self, socket: Socket, bound: Bound) -> Event {
        let Bound { listener, identity } = bound;
        match UnixListener::from_std(listener) {
            Ok(listener) => {
                self.sockets.put(socket, Arc::new(listener), identity);
                self.session(socket);
                Event::Serving { socket, identity }
            }
            Err(error) => {
                tracing::error!(?socket, %error, "a socket of the node is not served");
                Event::OpenFailed { socket }
            }
        }
    }

    /// Begins to accept on a socket's listener.
    fn session(&mut self, socket: Socket) {
        let Some(served) = self.sockets.again(socket) else { return };
        let (listener, stop, ended) =
            (Arc::clone(&served.listener), served.stop.clone(), served.ended.clone());
        match socket {
            Socket::Cni => {
                let serving = self.server.serve(listener, stop.clone());
                self.jobs.spawn(async move {
                    let result = serving.await;
                    ended.cancel();
                    result?;
                    anyhow::ensure!(stop.is_cancelled(), "the CNI service ended although nothing told it to");
                    Ok(None)
                });
            }
            Socket::Handover => {
                let (standbys, connected, events) =
                    (Arc::clone(&self.standbys), self.connected.clone(), self.events.clone());
                self.jobs.spawn(async move {
                    aether_handover::accept(listener, standbys, connected, events, stop).await;
                    Ok(None)
                });
            }
            // No proxy is served yet.
            Socket::Xds => {}
        }
    }

    fn enable_modules(&mut self) {
        let modules = Arc::clone(&self.node.modules);
        self.jobs.spawn(async move {
            let began = Instant::now();
            modules.take_over().await?;
            tracing::info!(ms = millis(began.elapsed()), "enabled the modules");
            Ok(Some(Event::ModulesEnabled))
        });
        self.keep_up();
        if let Some(address) = self.config.metrics_addr {
            let serving = metrics_http::serve(address, Arc::clone(&self.node), self.life.clone());
            self.jobs.spawn(async move {
                serving.await.context("the address for metrics is not answered")?;
                Ok(None)
            });
        }
    }

    /// What an owner does beside serving: tombstones and sweeps.
    fn keep_up(&mut self) {
        self.upkeep = self.life.child_token();
        let (node, stop) = (Arc::clone(&self.node), self.upkeep.clone());
        self.jobs.spawn(async move {
            stop.run_until_cancelled(node.store.keep(Arc::new(ports::Namespaces))).await;
            anyhow::ensure!(stop.is_cancelled(), "tombstones and sweep ended although nothing told them to");
            Ok(None)
        });
    }

    fn greet(&self, peer: Peer, greeting: Greeting) {
        let Some(connection) = self.peers.get(&peer) else { return };
        let named: Vec<Socket> = greeting.listeners.iter().map(|listener| listener.socket).collect();
        // A socket that is being bound anew: the greeting comes again when it is.
        let Some(descriptors) = self.sockets.descriptors(named.into_iter()) else { return };
        if let Err(error) = connection.say(&ToStandby::Greeting(greeting), &descriptors) {
            tracing::warn!(error = %error_chain(&error), "a standby was not greeted");
            connection.close();
        }
    }

    fn tell_standby(&self, peer: Peer, message: &ToStandby) {
        if let Some(connection) = self.peers.get(&peer)
            && let Err(error) = connection.say(message, &[])
        {
            tracing::warn!(error = %error_chain(&error), "a standby is not reached");
            connection.close();
        }
    }

    fn drain(&mut self, round: Round) {
        self.draining = Some(Instant::now());
        self.node.left_off();
        self.upkeep.cancel();
        let (ended, store) = (self.sockets.pause(Socket::Cni), self.node.store.clone());
        self.jobs.spawn(async move {
            if let Some(ended) = ended {
                ended.cancelled().await;
            }
            store.rest().await;
            Ok(Some(Event::Drained { round }))
        });
    }

    fn take_back(&mut self) {
        self.draining = None;
        self.session(Socket::Cni);
        self.keep_up();
        self.node.became_owner();
    }

    /// While the standby is asked whether it is ready this agent still serves: what is flushed now is not left for the time in
    /// which nobody does.
    fn flush_ahead(&mut self) {
        let modules = Arc::clone(&self.node.modules);
        self.jobs.spawn(async move {
            modules.flush().await.context("a flush broke off")?;
            Ok(None)
        });
    }

    /// "Yours" has been said, and the end follows: nothing of this agent writes to the node any more. Where something still does,
    /// the lock goes with the process.
    fn hand_on(&self) {
        let modules = &self.node.modules;
        if modules.host.hand_on() && modules.ends.is_still() {
            self.lock.let_go();
        }
    }

    /// The modules are told and what they stage is done. They go on until the process ends: the drain may be taken back.
    fn flush(&mut self, round: Round) {
        let modules = Arc::clone(&self.node.modules);
        let drained = self.draining.map_or(Duration::ZERO, |since| since.elapsed());
        tracing::info!(ms = millis(drained), "drained: nothing is in flight");
        let began = Instant::now();
        self.jobs.spawn(async move {
            match tokio::time::timeout(MODULES_END, modules.flush()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "what modules hold back is not written"),
                Err(_) => tracing::warn!("modules did not end in time and are left"),
            }
            tracing::info!(ms = millis(began.elapsed()), "flushed");
            Ok(Some(Event::Flushed { round }))
        });
    }

    fn say(&self, note: &Note) {
        match note {
            Note::LockReplaced => tracing::error!(lock = %self.config.lock().display(), "{note}"),
            // What failed was said when it did.
            Note::Failed { .. } => tracing::debug!("{note}"),
            Note::Done { step, took } => {
                tracing::info!(step = step.name(), ms = millis(*took), "takeover: a step is done");
            }
            Note::NoCommonVersion { .. }
            | Note::ForeignListener { .. }
            | Note::OwnerWithoutLock { .. }
            | Note::CertificatesLate
            | Note::PathLost { .. }
            | Note::NotGreeted { .. }
            | Note::PutOff { .. }
            | Note::NotReady { .. }
            | Note::TakesBack => tracing::warn!("{note}"),
            Note::StandsBy
            | Note::Attached { .. }
            | Note::OwnerGone
            | Note::Locked
            | Note::Serves { .. }
            | Note::Greeted { .. }
            | Note::Chosen { .. }
            | Note::Drains { .. } => tracing::info!("{note}"),
        }
    }
}

fn failed(step: Step, error: &dyn std::error::Error, troubles: &Repeats) -> Event {
    let error = error_chain(error);
    if troubles.news(&error) {
        tracing::error!(error, "cannot take over the pods' records, which is tried again; see --state-dir");
    }
    Event::StepFailed { step }
}

fn say_to(owner: &Connection, message: &ToOwner) {
    if let Err(error) = owner.say(message, &[]) {
        tracing::debug!(error = %error_chain(&error), "the owner is not reached");
        // Its end is heard as any other.
        owner.close();
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn open_to_all(run_dir: &Path) {
    if let Err(errno) = rustix::fs::chmod(run_dir, rustix::fs::Mode::from_raw_mode(RUN_DIR_MODE)) {
        tracing::warn!(directory = %run_dir.display(), "cannot set the run directory's mode to {RUN_DIR_MODE:04o}: {errno}");
    }
}
