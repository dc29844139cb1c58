//! The lock under which list, wanted state, binary and marker are changed (I01).

use std::path::Path;
use std::time::{Duration, Instant};

use aether_durable::lock::Lock;

use crate::error::Error;
use crate::log;
use crate::stop::Stop;

/// How long another program may hold the lock: an edit takes milliseconds, so this is a program that hangs.
const BUSY: Duration = Duration::from_secs(60);
/// The pause between two tries.
const RETRY: Duration = Duration::from_millis(20);
/// After how long it is said that the lock is waited for.
const SAY: Duration = Duration::from_secs(1);

/// Takes the lock, waiting a bounded time.
pub fn take(path: &Path, stop: &Stop) -> Result<Lock, Error> {
    let start = Instant::now();
    let mut said = false;
    loop {
        let lock =
            Lock::try_take(path).map_err(|source| Error::Step { what: "lock out other editors", source })?;
        if let Some(lock) = lock {
            return Ok(lock);
        }
        if stop.is_asked() {
            return Err(Error::Stopped { path: path.to_owned() });
        }
        let waited = start.elapsed();
        if waited >= BUSY {
            return Err(Error::Busy { path: path.to_owned(), waited });
        }
        if waited >= SAY && !said {
            log::line(format_args!("waiting for {}, which another program has locked", path.display()));
            said = true;
        }
        std::thread::sleep(RETRY);
    }
}
