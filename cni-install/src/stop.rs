//! Being asked to end. As the first process of a container the program would not be ended by SIGTERM at all unless it
//! listens: the kernel keeps default actions from it. It ends where it waits, and finishes a step that it has begun.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

/// Whether the program was asked to end.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asked by SIGTERM or SIGINT.
    pub fn on_signals() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop.0))?;
        }
        Ok(stop)
    }

    /// Whether it was.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
