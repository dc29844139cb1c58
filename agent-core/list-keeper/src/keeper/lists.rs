//! Lists: replaced, derived, tidied.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use aether_conflist::chain::Want;
use aether_conflist::derived;
use aether_conflist::edit;
use aether_conflist::load::{Content, DropIns, Kind, List, kind_of};
use aether_conflist::own::OwnEntry;
use aether_conflist::want::Resolved;
use aether_domain::paths;
use aether_domain::text::{error_chain, sha256};

use super::{Keeper, Outcome, Step};
use crate::derive::{self, Derivation};
use crate::look;
use crate::rewrite::{self, RewriteError, Rewritten};

impl Keeper {
    pub(super) fn try_replace(
        &self,
        name: &str,
        expect: &str,
        bytes: &[u8],
        still: &impl Fn() -> bool,
    ) -> Step<Outcome> {
        let session = self.begin(still)?;
        let path = self.file(name)?;
        let old = match look::content(&path) {
            Content::Bytes(old) if sha256(&old) == expect => old,
            Content::Bytes(_) => {
                return Err(Outcome::Conflict(format!("{name} was changed since it was inspected")));
            }
            Content::Broken(why) | Content::Unread(why) => {
                return Err(Outcome::Conflict(format!("{name} was changed since it was inspected: {why}")));
            }
        };
        let own = self.own(&session.wanted, None)?;
        session.wanted.allows(name, &old, bytes)?;
        let done = replace(&path, &old, bytes, &own, still)?;
        let swept = self.sweep_stale(still)?;
        Ok(Outcome::Done(format!("{name}: {done}{swept}")))
    }

    pub(super) fn try_derive(&self, conf: &str, expect: &str, still: &impl Fn() -> bool) -> Step<Outcome> {
        let session = self.begin(still)?;
        match look::content(&self.file(conf)?) {
            Content::Bytes(bytes) if sha256(&bytes) == expect => {}
            _ => return Err(Outcome::Conflict(format!("{conf} was changed since it was inspected"))),
        }
        let names = look::names(&self.places.conf_dir).map_err(|error| {
            Outcome::Failed(format!("cannot list {}: {error}", self.places.conf_dir.display()))
        })?;
        let choice = derived::choose(names);
        let done = match &choice.first {
            None => "no file is left to derive from".to_owned(),
            Some(first) if kind_of(first) == Kind::List => self.put(first, &session.wanted, still)?,
            Some(first) => self.derive(first, &session.wanted, still)?,
        };
        let swept = self.sweep_stale(still)?;
        Ok(Outcome::Done(format!("{done}{swept}")))
    }

    /// Puts our entry into a foreign list.
    fn put(&self, name: &OsStr, wanted: &Resolved, still: &impl Fn() -> bool) -> Step<String> {
        let shown = name.display();
        let file = look::candidate(&self.places.conf_dir, name.to_owned());
        let Content::Bytes(old) = file.content else {
            return Err(Outcome::Conflict(format!("{shown} cannot be read yet")));
        };
        let list = List::load(name, old.as_slice(), file.drop_ins)
            .map_err(|refusal| Outcome::Conflict(format!("not a list yet: {refusal}")))?;
        let own = self.own(wanted, Some(&list))?;
        let new = edit::put(&list, &own).map_err(|error| Outcome::Refused(error_chain(&error)))?;
        if new == old {
            return Ok(format!("{shown} holds our entry"));
        }
        let done = replace(&self.places.conf_dir.join(name), &old, &new, &own, still)?;
        Ok(format!("{shown}: {done}"))
    }

    /// Writes the list that is derived from a foreign configuration.
    fn derive(&self, source_name: &OsStr, wanted: &Resolved, still: &impl Fn() -> bool) -> Step<String> {
        let shown = source_name.display();
        let Content::Bytes(source_bytes) = look::content(&self.places.conf_dir.join(source_name)) else {
            return Err(Outcome::Conflict(format!("{shown} cannot be read yet")));
        };
        let source = List::load(source_name, source_bytes.as_slice(), DropIns::none())
            .map_err(|refusal| Outcome::Conflict(format!("not a configuration yet: {refusal}")))?;
        derived::can_derive(&source).map_err(|error| Outcome::Refused(error_chain(&error)))?;
        let name = derived::name_for(source_name).unwrap_or_default();
        let old = match look::content(&self.places.conf_dir.join(&name)) {
            Content::Bytes(old) => Some(old),
            Content::Broken(_) => None,
            Content::Unread(why) => {
                return Err(Outcome::Failed(format!("cannot read {}: {why}", name.display())));
            }
        };
        let existing = old.as_ref().and_then(|old| List::load(&name, old.as_slice(), DropIns::none()).ok());
        let own = self.own(wanted, existing.as_ref())?;
        let new = derived::derive(&source, existing.as_ref(), &own)
            .map_err(|error| Outcome::Refused(error_chain(&error)))?;
        if old.as_ref() == Some(&new) {
            return Ok(format!("{} is what it should be", name.display()));
        }
        let derivation =
            Derivation { source: source_name.to_owned(), source_bytes, name: name.clone(), old, new };
        let done =
            derive::write(&self.places.conf_dir, &derivation, &own, still).map_err(|error| failed(&error))?;
        Ok(format!("{}: {}", name.display(), told(done, &name)?))
    }

    /// Removes derived lists that have no business there, and says so.
    fn sweep_stale(&self, still: &impl Fn() -> bool) -> Step<String> {
        let Ok(names) = look::names(&self.places.conf_dir) else { return Ok(String::new()) };
        let choice = derived::choose(names);
        let stale: Vec<OsString> = choice.stale().cloned().collect();
        if stale.is_empty() || !still() {
            return Ok(String::new());
        }
        let removed = derive::remove(&self.places.conf_dir, &stale)
            .map_err(|error| Outcome::Failed(error_chain(&error)))?;
        let names: Vec<_> = removed.iter().map(|name| name.display().to_string()).collect();
        Ok(format!("; removed {}, whose source is gone or no longer first", names.join(", ")))
    }

    /// The entry that goes into a list: the wanted one; where only a newer program knows it, the one that stands there.
    fn own(&self, wanted: &Resolved, list: Option<&List>) -> Step<OwnEntry> {
        let standing = || {
            let list = list.filter(|_| matches!(wanted.want, Want::Newer))?;
            list.ours().next().and_then(|entry| OwnEntry::parse(list.text(entry)).ok())
        };
        standing().or_else(|| wanted.put_back.clone()).ok_or_else(|| {
            Outcome::Refused(match &wanted.want {
                Want::Nothing(why) => format!("no entry is known to be wanted: {why}"),
                Want::Entry(_) | Want::Newer => format!(
                    "a newer release wrote {}, and no entry of ours was observed healthy yet",
                    self.places.conf_dir.join(paths::WANTED).display()
                ),
            })
        })
    }

    fn file(&self, name: &str) -> Step<PathBuf> {
        let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        if plain {
            Ok(self.places.conf_dir.join(name))
        } else {
            Err(Outcome::Refused(format!("{name:?} names no file")))
        }
    }
}

/// Whether what a module hands over is what is wanted now, and nothing else.
trait Allows {
    fn allows(&self, name: &str, old: &[u8], new: &[u8]) -> Step<()>;
}

impl Allows for Resolved {
    fn allows(&self, name: &str, old: &[u8], new: &[u8]) -> Step<()> {
        let load = |bytes: &[u8]| List::load(name, bytes, DropIns::none());
        let list = load(new)
            .map_err(|refusal| Outcome::Refused(format!("the new list would not be loaded: {refusal}")))?;
        let ours: Vec<_> = list.ours().collect();
        let is = |own: &Option<OwnEntry>| match (own, ours.as_slice()) {
            (Some(own), [entry]) => own.equals(entry),
            _ => false,
        };
        let right = match &self.want {
            Want::Entry(_) => is(&self.put_back),
            // An entry of ours that stands is never altered; a strip is repaired with the last one seen.
            Want::Newer => load(old).is_ok_and(|old| old.ours().next().is_none()) && is(&self.put_back),
            Want::Nothing(why) => {
                return Err(Outcome::Refused(format!("no entry is known to be wanted: {why}")));
            }
        };
        let stale = || Outcome::Conflict(format!("the entry for {name} is not the one that is wanted now"));
        if !right {
            return Err(stale());
        }
        // Looked at when it was staged, too; this is the last look before it stands.
        let old = load(old).map_err(|refusal| {
            Outcome::Refused(format!("{name} is no list that is ever edited: {refusal}"))
        })?;
        let rest = |list| edit::remove(list).map_err(|error| Outcome::Refused(error_chain(&error)));
        if rest(&old)? != rest(&list)? {
            return Err(Outcome::Refused(format!("the new {name} changes something outside our entry")));
        }
        if edit::keeps_place(&old, &list) {
            Ok(())
        } else {
            Err(Outcome::Refused(format!(
                "the new {name} puts our entry before others, where it did not stand"
            )))
        }
    }
}

/// Replaces a list; a late writer's gets our entry in turn.
fn replace(
    path: &Path,
    old: &[u8],
    new: &[u8],
    own: &OwnEntry,
    still: &impl Fn() -> bool,
) -> Step<&'static str> {
    let name = path.file_name().unwrap_or_default();
    let again = |bytes: Vec<u8>| {
        let list = List::load(name, bytes, DropIns::none()).ok()?;
        edit::put(&list, own).ok()
    };
    let done = rewrite::rewrite(path, old, new, still, again).map_err(|error| failed(&error))?;
    told(done, name)
}

fn told(done: Rewritten, name: &OsStr) -> Step<&'static str> {
    match done {
        Rewritten::Yes => Ok("our entry is in it"),
        Rewritten::TakenOver => Ok("our entry is in what another program wrote into it meanwhile"),
        Rewritten::Spoiled => {
            Ok("our entry is in it; what another program wrote into it meanwhile is no list")
        }
        Rewritten::Changed => Err(Outcome::Conflict(format!(
            "{} was changed while it was about to be replaced",
            name.display()
        ))),
    }
}

fn failed(error: &RewriteError) -> Outcome {
    match error {
        RewriteError::Link(_) => Outcome::Refused(error_chain(error)),
        RewriteError::Open { .. } | RewriteError::Write(_) => Outcome::Failed(error_chain(error)),
    }
}
