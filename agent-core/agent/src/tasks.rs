//! Every task of the agent, owned and named. One that ends before it was told to is a reason to end the process.

use std::collections::HashMap;
use std::future::Future;

use anyhow::anyhow;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// Owned tasks that share one signal to stop.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    set: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, &'static str>,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task; `make` is given the signal at which it has to end.
    pub(crate) fn start<F>(&mut self, name: &'static str, make: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let handle = self.set.spawn(make(self.stop.clone()));
        self.names.insert(handle.id(), name);
    }

    /// Waits for a task to end although nobody told it to, and says which and why. Without tasks it waits for ever.
    pub(crate) async fn unexpected_end(&mut self) -> anyhow::Error {
        let Some(ended) = self.set.join_next_with_id().await else { return std::future::pending().await };
        let (name, why) = self.explain(ended);
        match why {
            Some(error) => error.context(format!("the task \"{name}\" failed")),
            None => anyhow!("the task \"{name}\" ended although nothing told it to"),
        }
    }

    fn explain(
        &mut self,
        ended: Result<(Id, anyhow::Result<()>), tokio::task::JoinError>,
    ) -> (&'static str, Option<anyhow::Error>) {
        match ended {
            Ok((id, result)) => (self.names.remove(&id).unwrap_or("?"), result.err()),
            Err(error) => (self.names.remove(&error.id()).unwrap_or("?"), Some(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_end_that_nobody_asked_for_is_named_with_its_reason() {
        let mut tasks = Tasks::default();
        tasks.start("idle", |stop| async move {
            stop.cancelled().await;
            Ok(())
        });
        tasks.start("quitter", |_| async { Ok(()) });
        assert!(tasks.unexpected_end().await.to_string().contains("\"quitter\" ended although"));
        tasks.start("failing", |_| async { Err(anyhow!("no luck")) });
        let error = format!("{:#}", tasks.unexpected_end().await);
        assert!(error.contains("\"failing\" failed: no luck"), "{error}");
        tasks.start("panicking", |_| async { panic!("oh") });
        let error = format!("{:#}", tasks.unexpected_end().await);
        assert!(error.contains("\"panicking\" failed") && error.contains("panic"), "{error}");
    }
}
