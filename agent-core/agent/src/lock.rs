//! Getting the node lock, and watching over it (T01).

use std::path::PathBuf;

use aether_domain::limits::LOCK_CHECK;
use aether_durable::lock::{Lock, Standing};
use tokio::sync::oneshot;

/// Takes the lock, or stands by until its holder ends. It waits inside flock(2), so that the lock is had in the moment in
/// which the other process ends, on a thread of its own: the wait may last as long as the process, and ends with it.
pub(crate) async fn get(path: PathBuf) -> anyhow::Result<Lock> {
    if let Some(lock) = Lock::try_take(&path)? {
        return Ok(lock);
    }
    tracing::info!(lock = %path.display(), "another agent owns this node: standing by");
    let (had, got) = oneshot::channel();
    std::thread::Builder::new().name("node-lock".to_owned()).spawn(move || {
        // The receiver is gone only when the process ends.
        let _ = had.send(Lock::take(&path));
    })?;
    Ok(got.await??)
}

/// Returns when the path names another file than the locked one, or none.
pub(crate) async fn replaced(lock: &Lock) {
    let mut check = tokio::time::interval(LOCK_CHECK);
    loop {
        check.tick().await;
        if lock.standing() == Standing::Replaced {
            return;
        }
    }
}
