//! The node lock: tried, waited for, held for life (T01).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aether_durable::atomic::WriteError;
use aether_durable::lock::{Lock, Standing};
use tokio::sync::mpsc;

/// The lock of this agent, had or not.
pub(crate) struct NodeLock {
    path: PathBuf,
    /// Held until the end of the process, or right before (T07).
    held: Option<&'static Lock>,
    wait: Arc<Mutex<Wait>>,
    got: mpsc::Sender<Got>,
}

/// The wait in flock(2). It cannot be called off: its thread goes on, and the next wait is that one. There is one at a time,
/// however often the owner thinks better of it.
#[derive(Debug, Default)]
struct Wait {
    thread: Thread,
    wanted: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Thread {
    #[default]
    None,
    Waits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Wanted {
    #[default]
    No,
    Yes,
}

/// What a waiting thread got.
pub(crate) struct Got(Result<Lock, WriteError>);

impl NodeLock {
    /// A lock that is not had yet, and where waiting threads say what they got.
    pub(crate) fn new(path: PathBuf) -> (Self, mpsc::Receiver<Got>) {
        let (got, gets) = mpsc::channel(4);
        (Self { path, held: None, wait: Arc::default(), got }, gets)
    }

    /// Tries without blocking. Whether it is had now.
    pub(crate) fn try_take(&mut self) -> Result<bool, WriteError> {
        if self.held.is_none() {
            let lock = Lock::try_take(&self.path)?;
            self.keep(lock);
        }
        Ok(self.held.is_some())
    }

    /// Has a thread wait in flock(2): it has the lock in the moment in which its holder ends.
    pub(crate) fn wait(&self) -> std::io::Result<()> {
        let mut wait = locked(&self.wait);
        wait.wanted = Wanted::Yes;
        if wait.thread == Thread::Waits {
            return Ok(());
        }
        let (path, waits, got) = (self.path.clone(), Arc::clone(&self.wait), self.got.clone());
        std::thread::Builder::new().name("node-lock".to_owned()).spawn(move || {
            let lock = Lock::take(&path);
            let wanted = {
                let mut wait = locked(&waits);
                wait.thread = Thread::None;
                wait.wanted
            };
            if wanted == Wanted::Yes {
                // The receiver is gone only when the process ends.
                let _ = got.blocking_send(Got(lock));
            }
        })?;
        wait.thread = Thread::Waits;
        Ok(())
    }

    /// What the thread gets is wanted by nobody, and let go.
    pub(crate) fn stop_waiting(&self) {
        locked(&self.wait).wanted = Wanted::No;
    }

    /// Takes what a thread got; `false`: it does not count any more, and is let go.
    pub(crate) fn take(&mut self, got: Got) -> Result<bool, WriteError> {
        let wanted = std::mem::take(&mut locked(&self.wait).wanted);
        if wanted == Wanted::No || self.held.is_some() {
            return Ok(false);
        }
        self.keep(Some(got.0?));
        Ok(true)
    }

    /// Whether the path still names the locked file; without the lock it is not asked.
    pub(crate) fn standing(&self) -> Standing {
        self.held.map_or(Standing::Ours, Lock::standing)
    }

    /// Lets it go, as the last act of an agent that has said "yours": the end of a process with all its memory takes
    /// milliseconds in which nobody would serve.
    pub(crate) fn let_go(&self) {
        if let Some(lock) = self.held {
            lock.let_go();
        }
    }

    fn keep(&mut self, lock: Option<Lock>) {
        self.held = lock.map(|lock| &*Box::leak(Box::new(lock)));
    }
}

fn locked(wait: &Mutex<Wait>) -> MutexGuard<'_, Wait> {
    wait.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn t01_t13_a_wait_ends_with_its_holder_and_one_that_was_called_off_keeps_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.lock");
        let holder = Lock::try_take(&path).unwrap().unwrap();
        let (mut lock, mut gets) = NodeLock::new(path.clone());
        assert!(!lock.try_take().unwrap());
        let waiting = || {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
            let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
            names.filter(|name| name.trim() == "node-lock").count()
        };
        for _ in 0..20 {
            lock.wait().unwrap();
            lock.stop_waiting();
        }
        lock.wait().unwrap();
        // A thread gives itself its name.
        while waiting() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(waiting(), 1, "one thread, however often");
        drop(holder);
        let got = tokio::time::timeout(Duration::from_secs(20), gets.recv()).await.unwrap().unwrap();
        assert!(lock.take(got).unwrap());
        assert_eq!(lock.standing(), Standing::Ours);
        assert!(lock.try_take().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(lock.standing(), Standing::Replaced);
    }
}
