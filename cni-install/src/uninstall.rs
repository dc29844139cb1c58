//! Performing an uninstall: marker, lists, wanted state, binary (I01).

use aether_domain::text::error_chain;
use aether_durable::Attributes;
use aether_durable::atomic::{self, Removed};
use aether_list_keeper::{memory, plugin as binary};

use crate::config::{Force, Mode, Places, Uninstall};
use crate::diff;
use crate::edit::{self, Edited};
use crate::error::Error;
use crate::exit::Exit;
use crate::found::{Found, Kept, Plugin};
use crate::install::{PRIVATE, STATE_DIR_MODE};
use crate::lock;
use crate::log;
use crate::look::{self, Depth};
use crate::plan::{Step, Write};
use crate::removal::{self, BinaryStep, Removal};
use crate::stop::Stop;
use crate::tidy;

/// Uninstalls.
pub fn run(places: &Places, order: &Uninstall, force: Force, mode: Mode, stop: &Stop) -> Result<Exit, Error> {
    if mode == Mode::DryRun {
        return dry(places, &decide(places, order, force)?);
    }
    atomic::create_dir_all(&places.state_dir, STATE_DIR_MODE)
        .map_err(|source| Error::Step { what: "make the state directory", source })?;
    let _lock = lock::take(&places.lock(), stop)?;
    tidy::sweep(places);
    // The marker first: it stops every agent's repair.
    if let Write::Bytes(bytes) = decide(places, order, force)?.marker {
        atomic::replace_locked(&places.marker(), &bytes, &Attributes::with_mode(PRIVATE))
            .map_err(|source| Error::Step { what: "write the marker of an uninstall", source })?;
        log::line(format_args!("wrote the marker {}", places.marker().display()));
    }
    let removal = strip(places, order, force)?;
    finish(places, &removal)
}

/// Takes our entry out of every list. One that cannot be edited keeps none of the others from it.
fn strip(places: &Places, order: &Uninstall, force: Force) -> Result<Removal, Error> {
    for attempt in 0..=edit::ATTEMPTS {
        let removal = decide(places, order, force)?;
        tidy::stale(places, &removal.derived)?;
        if removal.lists.is_empty() {
            return Ok(removal);
        }
        // The last look is only to see whether the last attempt has done it.
        if attempt == edit::ATTEMPTS {
            break;
        }
        let mut failed: Option<Error> = None;
        for list in &removal.lists {
            let again = |bytes: Vec<u8>| removal::without_ours_in(&list.path, bytes);
            match edit::perform(&list.path, &list.old, &list.new, again).map_err(Error::from) {
                Ok(Edited::Yes) => log::line(format_args!("took our entry out of {}", list.path.display())),
                Ok(Edited::Changed) => {}
                // One that went meanwhile is looked at again.
                Err(error) if error.is_absence() => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Err(Error::Restless { path: places.conf_dir.clone(), attempts: edit::ATTEMPTS })
}

/// The steps after the lists.
fn finish(places: &Places, removal: &Removal) -> Result<Exit, Error> {
    for problem in &removal.problems {
        log::line(format_args!("not done: {}", error_chain(problem)));
    }
    if removal.problems.is_empty()
        && memory::forget(&places.state_dir)
            .map_err(|source| Error::Step { what: "forget what was observed healthy", source })?
            == Removed::Yes
    {
        log::line("forgot what the agent had last observed healthy");
    }
    if removal.wanted == Step::Do {
        atomic::remove(&places.wanted())
            .map_err(|source| Error::Step { what: "remove the wanted state", source })?;
        log::line(format_args!("removed the wanted state {}", places.wanted().display()));
    }
    let plugin = places.plugin();
    match removal.binary {
        BinaryStep::Keep | BinaryStep::Absent => {}
        BinaryStep::KeepForeign => log::line(format_args!(
            "{} is not the binary that was installed, so it stays; --force removes it",
            plugin.display()
        )),
        BinaryStep::KeepNeeded => {
            log::line(format_args!("{} stays while a list may name it", plugin.display()));
        }
        BinaryStep::Remove => {
            if atomic::remove(&plugin)
                .map_err(|source| Error::Step { what: "remove the plugin's binary", source })?
                == Removed::Yes
            {
                log::line(format_args!("removed {}", plugin.display()));
            }
        }
    }
    tidy::settle(places)?;
    if removal.problems.is_empty() {
        log::line("uninstalled: no list holds our entry");
        Ok(Exit::Done)
    } else {
        Err(Error::Unfinished(removal.problems.len()))
    }
}

fn decide(places: &Places, order: &Uninstall, force: Force) -> Result<Removal, Error> {
    let wanted = look::wanted(places)?;
    let plugin = match wanted.as_ref().and_then(Kept::good) {
        Some(wanted) => binary::compare(&places.plugin(), &wanted.plugin_sha256)?,
        // Nothing says which binary was installed: the name is ours.
        None => Plugin::Identical,
    };
    let found = Found {
        net: look::net(&places.conf_dir, Depth::All),
        plugin,
        wanted,
        marker: look::marker(places)?,
        now: look::now(),
    };
    Ok(removal::uninstall(places, order, force, &found))
}

fn dry(places: &Places, removal: &Removal) -> Result<Exit, Error> {
    if matches!(removal.marker, Write::Bytes(_)) {
        log::line(format_args!("would write the marker {}", places.marker().display()));
    }
    for list in &removal.lists {
        diff::print(&list.path, &list.old, &list.new);
    }
    for name in &removal.derived {
        log::line(format_args!("would remove {}", places.conf_dir.join(name).display()));
    }
    if removal.lists.is_empty() && removal.derived.is_empty() {
        log::out("unchanged: no list holds our entry");
    }
    for problem in &removal.problems {
        log::line(format_args!("would not be done: {}", error_chain(problem)));
    }
    if removal.wanted == Step::Do {
        log::line(format_args!("would remove the wanted state {}", places.wanted().display()));
    }
    if removal.binary == BinaryStep::Remove {
        log::line(format_args!("would remove {}", places.plugin().display()));
    }
    if removal.problems.is_empty() { Ok(Exit::Done) } else { Err(Error::Unfinished(removal.problems.len())) }
}
