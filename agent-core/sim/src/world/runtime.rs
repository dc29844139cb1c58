//! The container runtime: sandboxes of a few pods are added, replaced, added again and deleted, in the orders that a runtime
//! may choose. A DEL follows every failed ADD.

use aether_domain::clock::Stamp;
use aether_domain::format::Format;
use aether_domain::ids::{ContainerId, IfName, NetworkName, RequestId};
use aether_domain::key::Key;
use aether_domain::managed::Managed;
use aether_domain::record::{Netns, Pod as PodOf, Record};

use super::plugin::What;
use super::{MS, Next, US, World};

/// The runtime's last word on a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A call is under way.
    Busy,
    /// ADD succeeded.
    Added,
    /// DEL succeeded.
    Deleted,
    /// A later sandbox of the pod was begun.
    Superseded,
    /// ADD failed; DEL follows.
    Failed,
}

/// One pod.
#[derive(Debug, Clone, Default)]
pub(super) struct Pod {
    current: Option<Key>,
    old: Option<Key>,
    sandboxes: u32,
    pub(super) busy: bool,
}

impl World {
    pub(super) fn runtime(&mut self, pod: usize) {
        let Some(known) = self.pods.get(pod).cloned() else { return };
        if known.busy {
            return;
        }
        let word = |key: &Option<Key>| key.as_ref().and_then(|key| self.words.get(key)).copied();
        let (current, old) = (word(&known.current), word(&known.old));
        let over = self.now >= self.plan.calm;
        let dice = self.rng.range(0, 100);
        match (current, old, known.current, known.old) {
            (Some(Word::Failed), _, Some(key), _) => self.delete(pod, key),
            (_, Some(Word::Superseded), _, Some(key)) if over || dice < 50 => self.delete(pod, key),
            (_, Some(Word::Deleted), _, _) => {
                self.edit(pod, |pod| pod.old = None);
                self.pause(pod);
            }
            _ if over => {}
            (Some(Word::Deleted), _, Some(key), _) if dice < 15 => self.delete(pod, key),
            (Some(Word::Deleted), _, Some(key), _) if dice < 30 => self.add_sandbox(pod, key),
            (None | Some(Word::Deleted | Word::Superseded | Word::Busy), ..) => self.add_new(pod),
            (Some(Word::Added), _, Some(key), _) if dice < 10 => self.add_sandbox(pod, key),
            (Some(Word::Added), None, Some(key), _) if dice < 30 => {
                self.words.insert(key.clone(), Word::Superseded);
                self.edit(pod, |pod| pod.old = Some(key));
                self.add_new(pod);
            }
            (Some(Word::Added), _, Some(key), _) => self.delete(pod, key),
            (Some(Word::Added | Word::Failed), _, None, _) => self.pause(pod),
        }
    }

    fn edit(&mut self, pod: usize, edit: impl FnOnce(&mut Pod)) {
        if let Some(pod) = self.pods.get_mut(pod) {
            edit(pod);
        }
    }

    fn pause(&mut self, pod: usize) {
        let high = if self.rng.chance(40) { 20 * MS } else { 400 * MS };
        self.later(100 * US, high, Next::Runtime(pod));
    }

    fn add_new(&mut self, pod: usize) {
        let mut number = 0;
        self.edit(pod, |pod| {
            pod.sandboxes += 1;
            number = pod.sandboxes;
        });
        let (Ok(container), Ok(interface)) =
            (format!("p{pod}s{number}").parse::<ContainerId>(), "eth0".parse::<IfName>())
        else {
            return;
        };
        let key = Key::new(container, interface);
        self.edit(pod, |pod| pod.current = Some(key.clone()));
        self.add_sandbox(pod, key);
    }

    fn add_sandbox(&mut self, pod: usize, key: Key) {
        let (Ok(network), Ok(request_id)) =
            ("cbr0".parse::<NetworkName>(), format!("r{}", self.calls.len()).parse::<RequestId>())
        else {
            return;
        };
        let record = Record {
            format: Format::V1,
            key: key.clone(),
            network,
            started: Stamp::new(self.boot.clone(), self.now),
            request_id,
            managed: Managed::Yes,
            netns: Netns::default(),
            pod: PodOf { namespace: "default".to_owned(), name: format!("pod-{pod}"), ..PodOf::default() },
            policy_labels: std::collections::BTreeMap::new(),
        };
        // A repeated ADD leaves the first one's word.
        if self.words.get(&key) != Some(&Word::Added) {
            self.words.insert(key.clone(), Word::Busy);
        }
        self.edit(pod, |pod| pod.busy = true);
        self.call(pod, key, What::Add(Box::new(record)));
    }

    fn delete(&mut self, pod: usize, key: Key) {
        self.words.insert(key.clone(), Word::Busy);
        self.edit(pod, |pod| pod.busy = true);
        self.call(pod, key, What::Del);
    }

    pub(super) fn call_done(&mut self, id: usize, added: bool) {
        let word = if added { Word::Added } else { Word::Deleted };
        self.say(|| format!("call {id} succeeded"));
        self.end_call(id, word);
    }

    pub(super) fn add_failed(&mut self, id: usize) {
        self.end_call(id, Word::Failed);
    }

    fn end_call(&mut self, id: usize, word: Word) {
        let Some((pod, key)) = self.calls.get(id).map(|call| (call.pod, call.key.clone())) else { return };
        self.words.insert(key, word);
        self.edit(pod, |pod| pod.busy = false);
        self.pause(pod);
    }
}
