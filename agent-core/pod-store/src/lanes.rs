//! Calls of one key are served in the order in which they came; those of different keys do not wait for each other (K16).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aether_domain::key::Key;
use tokio::sync::oneshot;

/// All lanes. A key that nobody uses takes no room.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes {
    /// A key that is here is taken; behind it wait those who came later.
    taken: Arc<Mutex<HashMap<Key, VecDeque<oneshot::Sender<Turn>>>>>,
}

/// A place in a key's lane.
#[derive(Debug)]
pub(crate) enum Place {
    /// Nobody was there.
    First(Turn),
    /// Somebody was. Dropping it gives the place up.
    Behind(oneshot::Receiver<Turn>),
}

/// The right to act on a key, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    lanes: Lanes,
    key: Option<Key>,
}

impl Lanes {
    /// Takes the next place in the lane of `key`, at once.
    pub(crate) fn enter(&self, key: &Key) -> Place {
        let mut taken = self.lock();
        match taken.get_mut(key) {
            None => {
                taken.insert(key.clone(), VecDeque::new());
                Place::First(Turn { lanes: self.clone(), key: Some(key.clone()) })
            }
            Some(waiting) => {
                let (sender, receiver) = oneshot::channel();
                waiting.push_back(sender);
                Place::Behind(receiver)
            }
        }
    }

    /// Waits for the turns of several keys. Whoever holds more than one lane took them in key order, and whoever holds
    /// one waits for no other: so nobody waits in a circle.
    pub(crate) async fn all(&self, keys: &BTreeSet<Key>) -> Vec<Turn> {
        let mut turns = Vec::with_capacity(keys.len());
        for key in keys {
            turns.push(self.enter(key).turn().await);
        }
        turns
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, VecDeque<oneshot::Sender<Turn>>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits for the turn. Dropping the future gives the place up; those behind move on.
    pub(crate) async fn turn(self) -> Turn {
        match self {
            Self::First(turn) => turn,
            // The sender is dropped only when its turn was sent, or the lanes are gone together with all their work.
            Self::Behind(receiver) => match receiver.await {
                Ok(turn) => turn,
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Some(mut key) = self.key.take() else { return };
        loop {
            let next = {
                let mut taken = self.lanes.lock();
                let next = taken.get_mut(&key).and_then(VecDeque::pop_front);
                if next.is_none() {
                    taken.remove(&key);
                    return;
                }
                next
            };
            let turn = Turn { lanes: self.lanes.clone(), key: Some(key) };
            match next.map(|sender| sender.send(turn)) {
                // Whoever waited is gone: the turn comes back, and goes to the next. Its own drop must do nothing.
                Some(Err(mut back)) => match back.key.take() {
                    Some(returned) => key = returned,
                    None => return,
                },
                Some(Ok(())) | None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests;
