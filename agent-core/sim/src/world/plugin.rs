//! The plugin: a call's connections, retries, deadline and tombstone (K04, K07).

use aether_domain::clock::Stamp;
use aether_domain::format::Format;
use aether_domain::ids::RequestId;
use aether_domain::key::Key;
use aether_domain::limits::{ADD_DEADLINE, ADD_RETRY, DEL_DEADLINE};
use aether_domain::record::Record;
use aether_domain::takeover::Socket;
use aether_domain::tombstone::Tombstone;

use super::{MS, Next, US, World};
use crate::kernel::{Pid, Sock, Waiting};

/// How often it is looked whether a waiting ADD could be served.
const SAMPLE: u64 = 50 * MS;
/// How long an ADD may find a serving agent and fail all the same.
const SERVABLE_MAX: u64 = 2_000 * MS;

/// One run of the plugin.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) pod: usize,
    pub(super) key: Key,
    pub(super) what: What,
    pub(super) started: Stamp,
    /// The attempt; what belongs to an earlier one is late.
    pub(super) serial: u32,
    /// It gave up, or it ended.
    pub(super) gone: bool,
    queued: Option<Sock>,
    pub(super) hands: Option<Pid>,
    /// For how long it could have been served.
    servable: u64,
    answer: Option<Answer>,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Add(Box<Record>),
    Del,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Done,
    Refused(String),
}

/// What happens to a run of the plugin.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    Connect,
    Answered(u32),
    Reset(u32),
    Deadline,
    /// It writes a tombstone.
    Tombstone,
    /// It looks whether a record exists, nobody listening.
    LookForRecord,
    Sample,
}

impl World {
    pub(super) fn call(&mut self, pod: usize, key: Key, what: What) {
        let id = self.calls.len();
        let started = Stamp::new(self.boot.clone(), self.now);
        let (deadline, sampled) = match &what {
            What::Add(_) => (nanos(ADD_DEADLINE), true),
            // A tenth is left for the tombstone.
            What::Del => (nanos(DEL_DEADLINE) / 10 * 9, false),
        };
        self.say(|| format!("call {id}: {} {key}", if sampled { "ADD" } else { "DEL" }));
        self.calls.push(Call {
            pod,
            key,
            what,
            started,
            serial: 0,
            gone: false,
            queued: None,
            hands: None,
            servable: 0,
            answer: None,
        });
        self.later(MS, 5 * MS, Next::Plugin(id, Turn::Connect));
        self.put(self.now + deadline, Next::Plugin(id, Turn::Deadline));
        if sampled {
            self.put(self.now + 2 * SAMPLE, Next::Plugin(id, Turn::Sample));
        }
    }

    pub(super) fn plugin(&mut self, id: usize, turn: Turn) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let add = matches!(call.what, What::Add(_));
        match turn {
            Turn::Tombstone => self.leave_tombstone(id),
            _ if call.gone => {}
            Turn::Connect => self.connect(id),
            Turn::Answered(serial) if serial == call.serial => match call.answer.take() {
                Some(Answer::Done) => self.succeed(id),
                Some(Answer::Refused(why)) => self.refused(id, &why),
                None => {}
            },
            Turn::Reset(serial) if serial == call.serial => {
                call.serial += 1;
                call.queued = None;
                call.hands = None;
                let retry = nanos(ADD_RETRY);
                self.put(self.now + retry, Next::Plugin(id, Turn::Connect));
            }
            Turn::Answered(_) | Turn::Reset(_) => {}
            Turn::Deadline if add => self.time_out(id),
            Turn::Deadline => {
                // A time-out always leaves one (K07).
                call.gone = true;
                self.later(50 * US, 3 * MS, Next::Plugin(id, Turn::Tombstone));
            }
            Turn::LookForRecord => {
                if self.disk.records.contains_key(&call.key) {
                    call.gone = true;
                    self.later(50 * US, 3 * MS, Next::Plugin(id, Turn::Tombstone));
                } else {
                    self.succeed(id);
                }
            }
            Turn::Sample => self.sample(id),
        }
    }

    fn connect(&mut self, id: usize) {
        let listening = self.kernel.listening(Socket::Cni);
        let Some(call) = self.calls.get_mut(id) else { return };
        match (listening, &call.what) {
            (Some(sock), _) => {
                call.serial += 1;
                call.queued = Some(sock);
                let serial = call.serial;
                self.enqueue(sock, Waiting::Call(id, serial));
            }
            (None, What::Add(_)) => {
                let retry = nanos(ADD_RETRY);
                self.put(self.now + retry, Next::Plugin(id, Turn::Connect));
            }
            (None, What::Del) => self.later(10 * US, 500 * US, Next::Plugin(id, Turn::LookForRecord)),
        }
    }

    pub(super) fn answer(&mut self, id: usize, answer: Answer) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if call.gone {
            return;
        }
        call.answer = Some(answer);
        let serial = call.serial;
        self.later(5 * US, 300 * US, Next::Plugin(id, Turn::Answered(serial)));
    }

    /// The connection of that attempt is gone.
    pub(super) fn reset_call(&mut self, id: usize, serial: u32) {
        self.later(5 * US, 300 * US, Next::Plugin(id, Turn::Reset(serial)));
    }

    pub(super) fn reset_calls_of(&mut self, pid: Pid) {
        let mine = self.calls.iter().enumerate().filter(|(_, call)| call.hands == Some(pid) && !call.gone);
        // An answer that was sent before is read before the end of the stream.
        let mine: Vec<(usize, u32)> =
            mine.filter(|(_, call)| call.answer.is_none()).map(|(id, call)| (id, call.serial)).collect();
        for (id, serial) in mine {
            self.reset_call(id, serial);
        }
    }

    fn succeed(&mut self, id: usize) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.gone = true;
        let add = matches!(call.what, What::Add(_));
        if add {
            self.figures.added += 1;
        } else {
            self.figures.deleted += 1;
        }
        self.call_done(id, add);
    }

    /// A refusal may come only to a caller that has gone: whoever waits is neither deleted nor superseded.
    fn refused(&mut self, id: usize, why: &str) {
        let what = format!("I4: a waiting ADD was refused: {why}");
        self.fail(&what);
        self.call_failed(id);
    }

    fn time_out(&mut self, id: usize) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.gone = true;
        let (servable, key) = (call.servable, call.key.clone());
        let planned = !self.plan.harmful;
        if planned || servable > SERVABLE_MAX && !self.two_may_own() {
            let ms = servable / MS;
            self.fail(&format!(
                "T10: an ADD of {key} failed, although for {ms} ms an agent could have served it"
            ));
        }
        self.figures.excused += 1;
        self.call_failed(id);
    }

    fn call_failed(&mut self, id: usize) {
        if let Some(call) = self.calls.get_mut(id) {
            call.gone = true;
        }
        self.say(|| format!("call {id} failed"));
        self.add_failed(id);
    }

    fn leave_tombstone(&mut self, id: usize) {
        let Some(call) = self.calls.get(id) else { return };
        let request = format!("r{id}").parse::<RequestId>();
        let Ok(request_id) = request else { return };
        let tombstone = Tombstone {
            format: Format::V1,
            key: call.key.clone(),
            network: None,
            started: call.started.clone(),
            request_id,
        };
        self.say(|| format!("call {id} leaves a tombstone"));
        self.disk.tombstones.insert(tombstone.file_name(), tombstone);
        self.figures.tombstones += 1;
        self.figures.deleted += 1;
        self.call_done(id, false);
    }

    /// Could this ADD be served now? Then an agent owns the node, runs, accepts, and its queue is not one whose holders are
    /// all stopped (T10).
    fn sample(&mut self, id: usize) {
        let Some(call) = self.calls.get(id) else { return };
        let runs = |pid: Pid| self.agents.get(&pid).is_some_and(super::agent::Agent::is_running);
        let named = self.kernel.listening(Socket::Cni);
        let serves = self.agents.iter().any(|(pid, agent)| {
            agent.is_running()
                && agent.accepting
                && agent.listeners.get(&Socket::Cni).copied() == named
                && self.kernel.owns(*pid)
        });
        let stuck = match (call.hands, call.queued) {
            (Some(pid), _) => !runs(pid),
            (None, Some(sock)) => self.kernel.is_live(sock) && !self.kernel.holders(sock).any(runs),
            (None, None) => false,
        };
        let servable = if serves && !stuck { SAMPLE } else { 0 };
        if let Some(call) = self.calls.get_mut(id) {
            call.servable += servable;
        }
        self.put(self.now + SAMPLE, Next::Plugin(id, Turn::Sample));
    }
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
