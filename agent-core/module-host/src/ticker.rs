//! The clock of deadlines: a thread that advances the engine's epoch while a call runs, and is parked while none does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use wasmtime::Engine;

use crate::limits::TICK;

/// The thread; ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
    handle: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    running: AtomicUsize,
    stop: AtomicBool,
}

/// A call in flight.
#[derive(Debug)]
pub(crate) struct Running<'a>(&'a Ticker);

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (seen, engine) = (shared.clone(), engine.clone());
        // A thread and not a task: it must tick while every worker of a runtime is busy with the call that it bounds.
        let handle = std::thread::Builder::new().name("module-ticker".to_owned()).spawn(move || {
            while !seen.stop.load(Ordering::Acquire) {
                if seen.running.load(Ordering::Acquire) == 0 {
                    std::thread::park();
                } else {
                    std::thread::park_timeout(TICK);
                    engine.increment_epoch();
                }
            }
        })?;
        Ok(Self { shared, thread: handle.thread().clone(), handle: Some(handle) })
    }

    /// Ticks until the guard is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        if self.shared.running.fetch_add(1, Ordering::AcqRel) == 0 {
            self.thread.unpark();
        }
        Running(self)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.unpark();
        if let Some(handle) = self.handle.take() {
            // It cannot panic, and there is nobody to tell if it did.
            let _ = handle.join();
        }
    }
}

/// How many ticks a time is. One more than it lasts: the first may come at once.
pub(crate) fn ticks(deadline: Duration) -> u64 {
    let ticks = deadline.as_millis().div_ceil(TICK.as_millis().max(1));
    u64::try_from(ticks).unwrap_or(u64::MAX / 2).saturating_add(1)
}
