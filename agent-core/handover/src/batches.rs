//! Listeners that came with greetings, until they are served or closed.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aether_domain::takeover::message::Listener;
use aether_domain::takeover::{Batch, Identity, Socket};

/// The listeners of each greeting. Nothing is accepted on them here: their queues are the owner's.
#[derive(Debug, Default)]
pub struct Batches {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    last: u64,
    batches: BTreeMap<Batch, Vec<(Listener, OwnedFd)>>,
}

impl Batches {
    /// Keeps the descriptors of a greeting, which are as many as it names.
    pub fn keep(&self, named: &[Listener], descriptors: Vec<OwnedFd>) -> Batch {
        let mut kept = self.lock();
        kept.last += 1;
        let batch = Batch(kept.last);
        let listeners = named.iter().copied().zip(descriptors).collect();
        kept.batches.insert(batch, listeners);
        batch
    }

    /// Takes out the listener of `socket`, and what its path named right after it was bound.
    pub fn take(&self, batch: Batch, socket: Socket) -> Option<(OwnedFd, Identity)> {
        let mut kept = self.lock();
        let listeners = kept.batches.get_mut(&batch)?;
        let at = listeners.iter().position(|(named, _)| named.socket == socket)?;
        let (named, descriptor) = listeners.swap_remove(at);
        Some((descriptor, named.identity))
    }

    /// Closes what is left of a greeting's listeners.
    pub fn close(&self, batch: Batch) {
        let gone = self.lock().batches.remove(&batch);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Whole at every moment that the lock is released, by a panic too.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_each_listener_is_taken_once_by_its_socket_and_the_rest_is_closed() {
        let listener = |socket| Listener { socket, identity: Identity { dev: 1, ino: 2 } };
        let named = [listener(Socket::Cni), listener(Socket::Handover)];
        let (mut far, one) = std::os::unix::net::UnixStream::pair().unwrap();
        let (_, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let batches = Batches::default();
        let batch = batches.keep(&named, vec![one.into(), other.into()]);
        assert_ne!(batch, batches.keep(&[], Vec::new()));
        assert!(batches.take(batch, Socket::Xds).is_none());
        assert_eq!(batches.take(batch, Socket::Handover).unwrap().1, Identity { dev: 1, ino: 2 });
        assert!(batches.take(batch, Socket::Handover).is_none());
        batches.close(batch);
        assert!(batches.take(batch, Socket::Cni).is_none());
        assert_eq!(std::io::Read::read(&mut far, &mut [0]).unwrap(), 0, "it is open still");
    }
}
