//! A client of the runtime, as a kubelet is one: it runs a pod, stops it, removes it, and begins anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::bail;
use tonic::Status;

use super::ledger::{Call, Kind, Ledger};
use super::{ANNOTATION, KEEP, RID_LIMIT, RID_PAUSE};
use crate::cri::{Cri, Pod, SandboxId};

/// The namespace of its pods.
const NAMESPACE: &str = "load";

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    cri: Cri,
    name: String,
    ledger: Arc<Ledger>,
}

impl Client {
    pub(super) fn new(cri: Cri, number: u32, ledger: Arc<Ledger>) -> Self {
        // Loads follow each other on one node, and the runtime takes no name twice.
        let stamp = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self { cri, name: format!("c{number}-{}", stamp.as_millis()), ledger }
    }

    /// Runs until it is told to stop.
    pub(super) async fn run(self, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
        let mut number = 0;
        while !stop.load(Ordering::Relaxed) {
            number += 1;
            let annotations = [(ANNOTATION.0.to_owned(), ANNOTATION.1.to_owned())].into();
            let pod = Pod { annotations, ..Pod::named(NAMESPACE, &format!("{}-{number}", self.name)) };
            match self.noted(Kind::Run, &pod.name, self.cri.run(&pod)).await {
                Ok(id) => {
                    self.ledger.lives(&id.0);
                    if number % KEEP != 1 {
                        self.end(&pod.name, &id).await?;
                    }
                }
                Err(_) => self.clean_up(&pod.name).await?,
            }
        }
        Ok(())
    }

    /// The runtime may keep the sandbox of a pod that did not start, which a kubelet then stops.
    async fn clean_up(&self, name: &str) -> anyhow::Result<()> {
        for sandbox in self.cri.list().await? {
            if sandbox.metadata.as_ref().is_some_and(|metadata| metadata.name == name) {
                self.end(name, &SandboxId(sandbox.id)).await?;
            }
        }
        Ok(())
    }

    /// Stops and removes, again and again until it is done.
    async fn end(&self, name: &str, id: &SandboxId) -> anyhow::Result<()> {
        self.ledger.goes(&id.0);
        self.insist(Kind::Stop, name, id).await?;
        self.insist(Kind::Remove, name, id).await
    }

    async fn insist(&self, kind: Kind, name: &str, id: &SandboxId) -> anyhow::Result<()> {
        let begin = Instant::now();
        loop {
            let call = async {
                if kind == Kind::Stop { self.cri.stop(id).await } else { self.cri.remove(id).await }
            };
            match self.noted(kind, name, call).await {
                Ok(()) => return Ok(()),
                Err(status) if begin.elapsed() > RID_LIMIT => {
                    bail!("{kind:?} of {name} did not succeed within {RID_LIMIT:?}: {status}")
                }
                // pause: of the poll
                Err(_) => tokio::time::sleep(RID_PAUSE).await,
            }
        }
    }

    async fn noted<T>(
        &self,
        kind: Kind,
        pod: &str,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        let began = Instant::now();
        let answer = call.await;
        let failed = answer.as_ref().err().map(|status| status.message().to_owned());
        self.ledger.note(Call { kind, pod: pod.to_owned(), began, took: began.elapsed(), failed });
        answer
    }
}
