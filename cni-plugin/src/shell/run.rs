//! One call, from standard input to its end.

use std::path::Path;
use std::time::{Duration, Instant};

use aether_api::cni::{AddRequest, Caller, CheckRequest, CheckResponse, GcRequest, StatusRequest};
use aether_domain::limits;
use aether_netns::Seen;
use tonic::{Response, Status};

use crate::config::{Entry, Input};
use crate::environment::{Command, Environment};
use crate::failure::{Failure, code};
use crate::invocation::{Action, Invocation, Marker, Route};
use crate::shell::agent::{self, Client};
use crate::shell::output::Output;
use crate::shell::{log, stdin, tombstone};
use crate::verdict::{self, Again, Call, Trouble};
use crate::{reply, version};

/// When this process began, on two clocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub(super) boottime_nanos: u64,
    instant: Instant,
}

impl Start {
    /// This moment.
    pub(super) fn now() -> Self {
        Self { boottime_nanos: aether_durable::boot::nanos(), instant: Instant::now() }
    }

    /// How long ago that is.
    pub(super) fn elapsed(self) -> Duration {
        self.instant.elapsed()
    }

    /// What is left of `budget`, which began with the process.
    pub(super) fn left(self, budget: Duration) -> Duration {
        budget.saturating_sub(self.elapsed())
    }
}

/// How a call ended well: what is printed, and what the log says.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The document that is owed.
    pub(super) document: Option<String>,
    /// One word.
    pub(super) word: &'static str,
    /// What a person should know of it.
    pub(super) reason: Option<String>,
}

impl Outcome {
    fn silent(word: &'static str) -> Self {
        Self { document: None, word, reason: None }
    }

    fn printed(document: String, word: &'static str) -> Self {
        Self { document: Some(document), word, reason: None }
    }
}

/// Serves one call. The version of an error is that of its document.
pub(super) fn run(
    start: Start,
    command: Command,
    environment: &Environment,
    output: &Output,
) -> Result<(), (&'static str, Failure)> {
    output.serve(command);
    let id = request_id(start);
    let input = stdin::read(match command {
        // A STATUS ends within the second, whatever its caller does (K10).
        Command::Del | Command::Status => limits::DEL_STDIN_WAIT,
        _ => limits::STDIN_WAIT,
    });
    let mut session = Session { start, id, entry: Entry::default() };
    let mut version = version::NEWEST;
    let ended = session.serve(command, environment, &input, &mut version).and_then(|outcome| {
        // With nobody left to read it an ADD has failed; the others owe nothing.
        if let Some(document) = &outcome.document {
            output.print(document).map_err(|error| {
                Failure::new(code::IO, "cannot print the result", format!("standard output: {error}"))
            })?;
        }
        Ok(outcome)
    });
    log::call(&log::Call {
        level: session.entry.log,
        id: &session.id,
        command,
        environment,
        socket: &session.entry.socket,
        elapsed: start.elapsed(),
        ended: &ended,
    });
    ended.map(|_| ()).map_err(|mut failure| {
        // The runtime's event then leads to both logs (K14).
        failure.details = format!("{} (request {})", failure.details, session.id);
        (version, failure)
    })
}

/// What is known of a call throughout.
#[derive(Debug)]
pub(super) struct Session {
    /// When it began.
    pub(super) start: Start,
    /// Its request id (K14).
    pub(super) id: String,
    /// Our entry.
    pub(super) entry: Entry,
}

impl Session {
    fn serve(
        &mut self,
        command: Command,
        environment: &Environment,
        input: &Input,
        version: &mut &'static str,
    ) -> Result<Outcome, Failure> {
        let invocation = Invocation::read(command, environment, input).map_err(|(of, failure)| {
            *version = of;
            failure
        })?;
        *version = invocation.version;
        self.entry = invocation.entry.clone();
        let marker = match command {
            Command::Version => Marker::Absent,
            _ => tombstone::marker(&self.entry.state_dir),
        };
        let invocation = invocation.resolve(marker)?;
        match invocation.action {
            Action::Version => Ok(Outcome::printed(reply::versions(version), "ok")),
            Action::Add { prev, route: Route::Agent, request } => {
                let word = self.add(&request)?;
                Ok(Outcome::printed(prev.to_owned(), word))
            }
            Action::Add { prev, route, .. } => Ok(Outcome::printed(prev.to_owned(), route.word())),
            Action::Del { key, network, request } => Ok(self.del(key, network, &request, marker)),
            Action::Check { route: Route::Agent, request } => self.check(&request).map(Outcome::silent),
            Action::Check { route, .. } => Ok(Outcome::silent(route.word())),
            Action::Gc(_) | Action::Status if marker == Marker::Stands => {
                Ok(Outcome::silent(Route::Uninstalled.word()))
            }
            Action::Gc(None) => Ok(Outcome::silent("no-list")),
            Action::Gc(Some(request)) => self.gc(&request).map(Outcome::silent),
            Action::Status => self.status().map(Outcome::silent),
        }
    }

    fn add(&self, request: &AddRequest) -> Result<&'static str, Failure> {
        let mut request = AddRequest { caller: Some(self.caller()?), ..request.clone() };
        if let Some(netns) = &mut request.netns
            && let Seen::Namespace { inode, created_secs } = aether_netns::look(Path::new(&netns.path))
        {
            (netns.inode, netns.created) = (inode, created_secs);
        }
        let add = async |mut client: Client| client.add(request.clone()).await;
        match self.ask(self.entry.add_deadline, Trouble::passes, add) {
            Ok(_) => Ok("recorded"),
            // Uninstalled meanwhile: every pod passes (K06).
            Err(_) if tombstone::marker(&self.entry.state_dir) == Marker::Stands => {
                Ok(Route::Uninstalled.word())
            }
            Err(trouble) => Err(verdict::add(self.call(), &trouble)),
        }
    }

    fn check(&self, request: &CheckRequest) -> Result<&'static str, Failure> {
        let mut request = CheckRequest { caller: Some(self.caller()?), ..request.clone() };
        let interface = request.attachment.as_ref().map(|it| it.interface.clone()).unwrap_or_default();
        if let Some(netns) = &mut request.netns {
            (netns.inode, netns.created) = look_inside(Path::new(&netns.path), &interface)?;
        }
        let answer: Result<CheckResponse, Trouble> =
            self.ask(limits::CHECK_DEADLINE, Trouble::hand_over, async |mut client: Client| {
                client.check(request.clone()).await
            });
        verdict::check(self.call(), answer)
    }

    fn gc(&self, request: &GcRequest) -> Result<&'static str, Failure> {
        let request = GcRequest { caller: Some(self.caller()?), ..request.clone() };
        let answer = self.ask(limits::CHECK_DEADLINE, Trouble::hand_over, async |mut client: Client| {
            client.gc(request.clone()).await
        });
        match answer {
            Ok(_) => Ok("collected"),
            Err(trouble) => verdict::gc(self.call(), &trouble),
        }
    }

    fn status(&self) -> Result<&'static str, Failure> {
        let request = StatusRequest { caller: Some(self.caller()?) };
        let budget = limits::STATUS_DEADLINE.saturating_sub(limits::WRAP_UP);
        let answer = self
            .ask(budget, Trouble::hand_over, async |mut client: Client| client.status(request.clone()).await);
        match answer {
            Ok(_) => Ok("serving"),
            Err(trouble) => verdict::status(self.call(), &trouble),
        }
    }

    /// Asks the agent within what is left of `budget`.
    pub(super) fn ask<T>(
        &self,
        budget: Duration,
        again: impl Fn(&Trouble) -> Again,
        call: impl AsyncFn(Client) -> Result<Response<T>, Status>,
    ) -> Result<T, Trouble> {
        // On this thread, and no other (K13).
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Trouble::Lost(format!("cannot start a runtime: {error}")))?;
        runtime.block_on(agent::ask(&self.entry.socket, self.start.left(budget), again, call))
    }

    /// Who calls, and since when.
    pub(super) fn caller(&self) -> Result<Caller, Failure> {
        let boot = aether_durable::boot::id().map_err(|error| {
            let details = format!("{}: {error}", aether_domain::paths::BOOT_ID);
            Failure::new(code::IO, "cannot tell which boot this is", details)
        })?;
        Ok(Caller {
            request_id: self.id.clone(),
            plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
            boot_id: boot.to_string(),
            boottime_ns: self.start.boottime_nanos,
        })
    }

    fn call(&self) -> Call<'_> {
        Call { socket: &self.entry.socket, waited: self.start.elapsed() }
    }
}

/// The namespace's inode and age, when it is there and holds the interface (K09).
fn look_inside(path: &Path, interface: &str) -> Result<(u64, u64), Failure> {
    let gone = |details: String| Failure::new(code::CHECK_FAILED, "the pod is not as it was made", details);
    let unseen = |error: &dyn std::fmt::Display| {
        Failure::new(
            code::IO,
            "cannot look at the pod's network namespace",
            format!("{}: {error}", path.display()),
        )
    };
    match aether_netns::look(path) {
        Seen::Namespace { inode, created_secs } => match aether_netns::has_interface(path, interface) {
            Ok(true) => Ok((inode, created_secs)),
            Ok(false) => {
                Err(gone(format!("no interface {interface} in the network namespace {}", path.display())))
            }
            Err(error) => Err(unseen(&error)),
        },
        Seen::Missing | Seen::NotANamespace | Seen::ParentMissing => {
            Err(gone(format!("the network namespace {} is gone", path.display())))
        }
        Seen::Error(error) => Err(unseen(&error)),
    }
}

/// Sixteen hex digits that no other call has.
fn request_id(start: Start) -> String {
    let mut random = [0u8; 8];
    match rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) {
        Ok(8) => format!("{:016x}", u64::from_ne_bytes(random)),
        // Early in a boot: two processes do not begin in one nanosecond with one id.
        _ => format!("{:x}-{:x}", std::process::id(), start.boottime_nanos),
    }
}
