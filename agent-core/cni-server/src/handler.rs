//! The calls themselves: admitted, checked, worked on in a task of their own, logged and counted.

use std::future::Future;
use std::sync::Arc;

use aether_api::cni;
use aether_domain::limits::{ADDS_MAX, CALLS_MAX};
use aether_domain::pods::{Added, Deleted, Known, PodService};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::{Code, Request, Response, Status};

use crate::calls::{About, Answered, Calls, Command, code_name, log};
use crate::convert;
use crate::peer::{GivesUp, Peer, Waiter};
use crate::server::Handle;
use crate::status::{self, NotBegun};

/// The service as `tonic` calls it.
pub(crate) struct Handler<S> {
    service: Arc<S>,
    calls: Arc<dyn Calls>,
    version: String,
    handle: Handle,
}

/// A call that may be worked on.
struct Begun {
    /// Until the task stands that counts instead: as long as it lives, the server is not drained.
    counted: TaskTrackerToken,
    /// One of the places that bound the calls in flight.
    place: OwnedSemaphorePermit,
}

/// A success: the answer, and the log's word for it.
type Done<T> = (T, &'static str);

impl<S: PodService> Handler<S> {
    pub(crate) fn new(service: Arc<S>, calls: Arc<dyn Calls>, version: String, handle: Handle) -> Self {
        Self { service, calls, version, handle }
    }

    fn begin(&self, command: Command) -> Result<Begun, NotBegun> {
        let shared = &self.handle.shared;
        let counted = shared.tasks.token();
        let (places, full) = match command {
            Command::Add => (&shared.adds, NotBegun::TooManyAdds { max: ADDS_MAX }),
            Command::Del | Command::Check | Command::Gc | Command::Status => {
                (&shared.others, NotBegun::TooManyCalls { max: CALLS_MAX })
            }
        };
        let place = Arc::clone(places).try_acquire_owned().map_err(|_| full)?;
        Ok(Begun { counted, place })
    }

    /// Works on a call. Cancel safety: `tonic` drops this future when the caller resets the call or leaves. Then
    /// `gives_up`, which lives in it, tells the work that nobody waits any more, and the task, which is tracked, goes on to
    /// its end: what was begun on the disk is finished or undone, in the turn that the call has in its key's lane.
    async fn run<T, W>(
        &self,
        command: Command,
        about: About,
        gives_up: GivesUp,
        work: impl FnOnce(Arc<S>, Arc<Waiter>) -> W,
    ) -> Result<Response<T>, Status>
    where
        T: Send + 'static,
        W: Future<Output = Result<Done<T>, Status>> + Send + 'static,
    {
        let arrived = Instant::now();
        let end = {
            let calls = Arc::clone(&self.calls);
            move |result: Result<&str, &Status>| {
                let took = arrived.elapsed();
                log(command, &about, took, result);
                let code = code_name(result.map_or_else(Status::code, |_| Code::Ok));
                calls.answered(&Answered { command, code, took });
            }
        };
        let begun = self.begin(command);
        // Behind its being counted: between the two a drain would see neither.
        gives_up.0.calls();
        let Begun { counted, place } = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let status = Status::from(error);
                end(Err(&status));
                return Err(status);
            }
        };
        let work = work(Arc::clone(&self.service), Arc::clone(&gives_up.0));
        let task = self.handle.shared.tasks.spawn(async move {
            let result = work.await;
            end(result.as_ref().map(|(_, outcome)| *outcome));
            drop(place);
            result
        });
        drop(counted);
        let result = task.await.unwrap_or_else(|error| {
            tracing::error!(%error, command = command.name(), "the work on a call broke off");
            Err(status::broken())
        });
        drop(gives_up);
        result.map(|(answer, _)| Response::new(answer))
    }
}

fn waiter<M>(request: &Request<M>) -> GivesUp {
    GivesUp(Waiter::new(request.extensions().get::<Peer>().cloned()))
}

#[tonic::async_trait]
impl<S: PodService> cni::cni_server::Cni for Handler<S> {
    async fn add(&self, request: Request<cni::AddRequest>) -> Result<Response<cni::AddResponse>, Status> {
        let gives_up = waiter(&request);
        let message = request.into_inner();
        let about =
            convert::about(message.caller.as_ref(), message.attachment.as_ref(), message.pod.as_ref());
        self.run(Command::Add, about, gives_up, |service, waiter| async move {
            let record = convert::add(message)?;
            let added = service.add(record, waiter).await.map_err(|error| status::of_add(&error))?;
            let outcome = match added {
                Added::Recorded => "recorded",
                Added::Replaced(_) => "recorded, an earlier sandbox forgotten",
                Added::Standing => "was recorded already",
            };
            Ok((cni::AddResponse {}, outcome))
        })
        .await
    }

    async fn del(&self, request: Request<cni::DelRequest>) -> Result<Response<cni::DelResponse>, Status> {
        let gives_up = waiter(&request);
        let message = request.into_inner();
        let about = convert::about(message.caller.as_ref(), message.attachment.as_ref(), None);
        self.run(Command::Del, about, gives_up, |service, _| async move {
            let del = convert::del(message)?;
            let deleted = service.del(del).await.map_err(|error| status::of_service(&error))?;
            let (existed, outcome) = match deleted {
                Deleted::Removed(_) => (true, "removed"),
                Deleted::Spared => (false, "kept: a later ADD is recorded"),
                Deleted::Absent => (false, "no record"),
            };
            Ok((cni::DelResponse { existed }, outcome))
        })
        .await
    }

    async fn check(
        &self,
        request: Request<cni::CheckRequest>,
    ) -> Result<Response<cni::CheckResponse>, Status> {
        let gives_up = waiter(&request);
        let message = request.into_inner();
        let about = convert::about(message.caller.as_ref(), message.attachment.as_ref(), None);
        self.run(Command::Check, about, gives_up, |service, _| async move {
            let check = convert::check(message)?;
            let known = service.check(check).await.map_err(|error| status::of_service(&error))?;
            let (known, outcome) = match known {
                Known::Managed => (cni::Known::Managed, "managed"),
                Known::Unmanaged => (cni::Known::Unmanaged, "unmanaged"),
                Known::BeforeInstall => (cni::Known::BeforeInstall, "older than the first install"),
                Known::Missing => (cni::Known::Missing, "no record"),
            };
            Ok((cni::CheckResponse { known: known.into() }, outcome))
        })
        .await
    }

    async fn gc(&self, request: Request<cni::GcRequest>) -> Result<Response<cni::GcResponse>, Status> {
        let gives_up = waiter(&request);
        let message = request.into_inner();
        let about = convert::about(message.caller.as_ref(), None, None);
        self.run(Command::Gc, about, gives_up, |service, _| async move {
            let gc = convert::gc(message)?;
            let removed = service.gc(gc).await.map_err(|error| status::of_service(&error))?;
            let outcome = if removed == 0 { "nothing to remove" } else { "removed" };
            Ok((cni::GcResponse { removed: u32::try_from(removed).unwrap_or(u32::MAX) }, outcome))
        })
        .await
    }

    async fn status(
        &self,
        request: Request<cni::StatusRequest>,
    ) -> Result<Response<cni::StatusResponse>, Status> {
        let gives_up = waiter(&request);
        let about = convert::about(request.get_ref().caller.as_ref(), None, None);
        let agent_version = self.version.clone();
        self.run(Command::Status, about, gives_up, |service, _| async move {
            service.status().await.map_err(|error| status::of_service(&error))?;
            Ok((cni::StatusResponse { agent_version }, "serving"))
        })
        .await
    }
}
