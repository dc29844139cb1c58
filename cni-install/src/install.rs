//! Performing an install: look, decide, act, look again.

use std::time::Instant;

use aether_conflist::own::OwnEntry;
use aether_domain::limits;
use aether_domain::text::error_chain;
use aether_durable::Attributes;
use aether_durable::atomic;
use aether_list_keeper::derive::{self, Derivation};
use aether_list_keeper::plugin::{self as binary, Source};

use crate::config::{Force, Install, Mode, Places};
use crate::diff;
use crate::edit::{self, Edited};
use crate::error::Error;
use crate::exit::Exit;
use crate::found::{Candidate, Found, Net};
use crate::lock;
use crate::log;
use crate::look::{self, Depth};
use crate::plan::{self, ListStep, Plan, Step, Write};
use crate::stop::Stop;
use crate::tidy;
use crate::waiting::{Missing, Reminder};
use crate::watch::Watch;

/// The mode of the files that only we read (I08).
pub(crate) const PRIVATE: u32 = 0o600;
/// The mode of the state directory.
pub(crate) const STATE_DIR_MODE: u32 = 0o700;

/// An install that is under way.
struct Run<'a> {
    places: &'a Places,
    order: &'a Install,
    force: Force,
    own: OwnEntry,
    source: Source,
    stop: &'a Stop,
}

/// How far an install came.
enum Reached {
    /// The list holds our entry.
    Chained,
    /// There is no list yet; all that does not need one is done.
    Waiting(Missing),
}

/// Installs.
pub fn run(places: &Places, order: &Install, force: Force, mode: Mode, stop: &Stop) -> Result<Exit, Error> {
    let own = OwnEntry::parse(order.entry.text.as_bytes())?;
    let source = binary::source(&order.plugin_source)?;
    let run = Run { places, order, force, own, source, stop };
    if mode == Mode::DryRun {
        return run.dry();
    }
    let start = Instant::now();
    let mut reminder = Reminder::every(limits::INSTALL_WAIT_LOG);
    loop {
        // Armed before the look, so that no change between look and wait is slept through.
        let watch = Watch::arm(&places.conf_dir);
        let missing = match run.attempt() {
            Ok(Reached::Chained) => return Ok(Exit::Done),
            Ok(Reached::Waiting(missing)) => missing,
            // A directory that went between look and write: the next look says what is waited for now.
            Err(error) if error.is_absence() => Missing::Removed(error_chain(&error)),
            Err(error) => return Err(error),
        };
        if mode == Mode::NoWait {
            log::line(format_args!("not chained: {missing}"));
            return Ok(Exit::NotChained);
        }
        if reminder.is_due(&missing, start.elapsed()) {
            log::line(format_args!("waiting ({} s): {missing}", start.elapsed().as_secs()));
        }
        watch.wait();
        if stop.is_asked() {
            log::line("ended by a signal while there was no list to take; what is installed so far stays");
            return Ok(Exit::NotChained);
        }
    }
}

impl Run<'_> {
    fn look(&self) -> Result<Found, Error> {
        Ok(Found {
            net: look::net(&self.places.conf_dir, Depth::First),
            plugin: binary::compare(&self.places.plugin(), &self.source.sha256)?,
            wanted: look::wanted(self.places)?,
            marker: look::marker(self.places)?,
            now: look::now(),
        })
    }

    fn plan(&self, found: &Found) -> Result<Plan, Error> {
        Ok(plan::install(self.places, self.order, &self.own, &self.source.sha256, self.force, found)?)
    }

    fn dry(&self) -> Result<Exit, Error> {
        let found = self.look()?;
        let plan = self.plan(&found)?;
        if plan.binary == Step::Do {
            log::line(format_args!("would install {}", self.places.plugin().display()));
        }
        if matches!(plan.wanted, Write::Bytes(_)) {
            log::line(format_args!("would write the wanted state {}", self.places.wanted().display()));
        }
        if plan.marker == Step::Do {
            log::line(format_args!("would remove the marker {}", self.places.marker().display()));
        }
        for name in &plan.stale {
            log::line(format_args!("would remove {}", self.places.conf_dir.join(name).display()));
        }
        match plan.list {
            ListStep::Wait(missing) => {
                log::line(format_args!("would wait: {missing}"));
                Ok(Exit::NotChained)
            }
            ListStep::Already(choice) => {
                log::out(format_args!("unchanged: {choice}"));
                Ok(Exit::Done)
            }
            ListStep::Edit { choice, old, new } => {
                log::out(format_args!("list: {choice}"));
                diff::print(&choice.path, &old, &new);
                Ok(Exit::Done)
            }
            ListStep::Derive { choice, derivation } => {
                let path = self.places.conf_dir.join(&derivation.name);
                log::out(format_args!("list: {}", choice.derived(derivation.name)));
                diff::print(&path, &derivation.old.unwrap_or_default(), &derivation.new);
                Ok(Exit::Done)
            }
        }
    }

    /// One pass from binary to list, under the lock (I01). It is not held while the install waits (I05).
    fn attempt(&self) -> Result<Reached, Error> {
        // What is refused, or cannot begin, changes nothing: not even the lock is made.
        if let Plan { binary: Step::NotYet, list: ListStep::Wait(missing), .. } = self.plan(&self.look()?)? {
            return Ok(Reached::Waiting(missing));
        }
        atomic::create_dir_all(&self.places.state_dir, STATE_DIR_MODE)
            .map_err(|source| Error::Step { what: "make the state directory", source })?;
        let _lock = lock::take(&self.places.lock(), self.stop)?;
        tidy::sweep(self.places);
        for _ in 0..edit::ATTEMPTS {
            if let Some(reached) = self.pass()? {
                return Ok(reached);
            }
        }
        // The last one may have done it.
        if let ListStep::Already(_) = self.plan(&self.look()?)?.list
            && let Some(reached) = self.pass()?
        {
            return Ok(reached);
        }
        Err(Error::Restless { path: self.places.conf_dir.clone(), attempts: edit::ATTEMPTS })
    }

    /// Looks and does what is to be done; nothing when another look is needed.
    fn pass(&self) -> Result<Option<Reached>, Error> {
        let found = self.look()?;
        let plan = self.plan(&found)?;
        self.prepare(&plan)?;
        match plan.list {
            ListStep::Wait(missing) => {
                tidy::stale(self.places, &plan.stale)?;
                tidy::settle(self.places)?;
                return Ok(Some(Reached::Waiting(missing)));
            }
            ListStep::Already(choice) => {
                tidy::stale(self.places, &plan.stale)?;
                tidy::settle(self.places)?;
                log::line(format_args!("chained: our entry stands in {choice}"));
                return Ok(Some(Reached::Chained));
            }
            ListStep::Edit { choice, old, new } => {
                log::line(format_args!("the runtime loads {choice}"));
                let again = |bytes: Vec<u8>| self.edited(&found.net, bytes);
                if edit::perform(&choice.path, &old, &new, again)? == Edited::Yes {
                    log::line(format_args!("put our entry into {}", choice.path.display()));
                }
            }
            ListStep::Derive { choice, derivation } => self.derive(&choice, &derivation)?,
        }
        Ok(None)
    }

    /// Writes the list that is derived from a single plugin's configuration (I06).
    fn derive(&self, choice: &plan::Choice, derivation: &Derivation) -> Result<(), Error> {
        log::line(format_args!("the runtime loads {choice}, a single plugin's configuration"));
        let path = self.places.conf_dir.join(&derivation.name);
        let done = derive::write(&self.places.conf_dir, derivation, &self.own, || true)?;
        if edit::told(&path, done) == Edited::Yes {
            log::line(format_args!("derived {} from it, with our entry in it", path.display()));
        }
        Ok(())
    }

    /// The steps before the list.
    fn prepare(&self, plan: &Plan) -> Result<(), Error> {
        if plan.binary == Step::Do {
            binary::install(&self.places.plugin(), &self.source, || true)?;
            log::line(format_args!(
                "installed {} (SHA-256 {})",
                self.places.plugin().display(),
                self.source.sha256
            ));
        }
        if let Write::Bytes(bytes) = &plan.wanted {
            atomic::replace(&self.places.wanted(), bytes, &Attributes::with_mode(PRIVATE))
                .map_err(|source| Error::Step { what: "write the wanted state", source })?;
            log::line(format_args!("wrote the wanted state {}", self.places.wanted().display()));
        }
        if plan.marker == Step::Do {
            atomic::remove(&self.places.marker())
                .map_err(|source| Error::Step { what: "remove the marker of an uninstall", source })?;
            log::line(format_args!("removed the marker {}", self.places.marker().display()));
        }
        Ok(())
    }

    /// What the list becomes when somebody else wrote `bytes` into it; `None` while they are no list.
    fn edited(&self, net: &Net, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let net = net.clone();
        let late = |file: Candidate| Candidate {
            content: aether_conflist::load::Content::Bytes(bytes.clone()),
            ..file
        };
        let net = Net { candidates: net.candidates.into_iter().map(late).collect(), ..net };
        match plan::list(self.places, &self.own, &net) {
            Ok(ListStep::Edit { new, .. }) => Some(new),
            Ok(ListStep::Already(_)) => Some(bytes),
            Ok(ListStep::Derive { .. } | ListStep::Wait(_)) | Err(_) => None,
        }
    }
}
