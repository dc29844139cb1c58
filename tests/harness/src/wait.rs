//! Waiting for a condition: polled, with a deadline, and with the last status in the error.

use std::time::{Duration, Instant};

use anyhow::anyhow;

/// The pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// Looks until `look` succeeds, at most for `limit`; the error says what was awaited and what the last look saw.
pub async fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        match look().await {
            Ok(value) => return Ok(value),
            Err(last) if start.elapsed() >= limit => return Err(late(what, limit, &last)),
            // pause: of the poll
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// The same for code that is not async.
pub fn until_blocking<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(value) => return Ok(value),
            Err(last) if start.elapsed() >= limit => return Err(late(what, limit, &last)),
            // pause: of the poll
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

fn late(what: &str, limit: Duration, last: &anyhow::Error) -> anyhow::Error {
    anyhow!("{what} did not come about within {limit:?}; last seen: {last:#}")
}
