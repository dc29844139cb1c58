//! Somebody else who answers on the CNI socket although the node lock was free (T06): an agent older than the lock, or one
//! whose lock file was removed by hand.

use std::io;
use std::path::Path;

use aether_domain::limits::{FOREIGN_LISTENER_LOG, FOREIGN_LISTENER_POLL};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Nobody,
    Somebody { pid: Option<i32> },
}

/// Waits until nothing answers on `socket`, and says who does every 30 s.
pub(crate) async fn wait_until_nobody_answers(socket: &Path) {
    let mut told: Option<Instant> = None;
    while let Answer::Somebody { pid } = ask(socket).await {
        if told.is_none_or(|at| at.elapsed() >= FOREIGN_LISTENER_LOG) {
            told = Some(Instant::now());
            tracing::warn!(
                socket = %socket.display(),
                pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
                "this agent holds the node lock, but another process answers on the CNI socket: waiting until it ends. If it \
                 is an agent whose lock file was removed, stop it"
            );
        }
        tokio::time::sleep(FOREIGN_LISTENER_POLL).await;
    }
    if told.is_some() {
        tracing::info!(socket = %socket.display(), "nobody else answers on the CNI socket any more");
    }
}

async fn ask(socket: &Path) -> Answer {
    match UnixStream::connect(socket).await {
        Ok(stream) => Answer::Somebody { pid: stream.peer_cred().ok().and_then(|peer| peer.pid()) },
        // A full backlog is somebody who is slow.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Answer::Somebody { pid: None },
        // Refused or missing is nobody; anything else is nothing that answers, and the bind says what is in the way.
        Err(_) => Answer::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn t06_a_missing_a_refusing_and_a_foreign_path_are_nobody_and_a_listener_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("cni.sock");
        wait_until_nobody_answers(&socket).await;
        std::fs::create_dir(&socket).unwrap();
        wait_until_nobody_answers(&socket).await;
        std::fs::remove_dir(&socket).unwrap();
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(ask(&socket).await, Answer::Somebody { pid: Some(own) });
        let waiting = wait_until_nobody_answers(&socket);
        tokio::pin!(waiting);
        assert!(
            tokio::time::timeout(Duration::from_millis(300), &mut waiting).await.is_err(),
            "it must wait"
        );
        drop(listener);
        tokio::time::timeout(Duration::from_secs(10), waiting).await.expect("refused is nobody");
    }
}
