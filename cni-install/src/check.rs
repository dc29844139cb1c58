//! `--check`: how the node stands, without touching it (I11).

use aether_conflist::chain::{self, Marker, Names, Snapshot, Want};
use aether_conflist::derived;
use aether_conflist::load::{Content, DropIns};
use aether_conflist::own::OwnEntry;
use aether_domain::chain::State;
use aether_domain::format::Parsed;
use aether_domain::text::error_chain;
use aether_domain::wanted::Wanted;
use aether_list_keeper::plugin as binary;

use crate::config::Places;
use crate::error::Error;
use crate::exit::Exit;
use crate::found::{Kept, Plugin};
use crate::log;
use crate::look::{self, Depth};

/// Looks, and answers on standard output.
pub fn run(places: &Places) -> Result<Exit, Error> {
    let wanted = look::wanted(places)?;
    let names = look::net(&places.conf_dir, Depth::First).names;
    let listed = match &names {
        Names::Listed(names) => names.as_slice(),
        Names::Missing | Names::Unread(_) => &[],
    };
    let loaded = derived::choose(listed).loaded;
    let source = loaded
        .as_deref()
        .and_then(derived::source_of)
        .filter(|name| listed.iter().any(|listed| listed == name));
    let source = source.map(|name| aether_list_keeper::look::content(&places.conf_dir.join(name)));
    let first = loaded.map(|name| aether_list_keeper::look::candidate(&places.conf_dir, name));
    let (content, drop_ins) = first.map_or_else(
        || (Content::Broken("there is none".to_owned()), DropIns::none()),
        |file| (file.content, file.drop_ins),
    );
    let marker = match look::marker(places) {
        Ok(None) => Marker::Absent,
        Ok(Some(_)) => Marker::Present,
        Err(error) => Marker::Unknown(error_chain(&error)),
    };
    let snapshot = Snapshot { marker, want: want(places, wanted.as_ref()), names, content, drop_ins, source };
    let seen = chain::inspect(&snapshot);
    let file = seen.file.map_or_else(
        || format!("no list in {}", places.conf_dir.display()),
        |name| places.conf_dir.join(name).display().to_string(),
    );
    log::out(format_args!("{}: {file}{}", seen.state.name(), reason(&seen.state)));
    if seen.state != State::Chained {
        return Ok(Exit::NotChained);
    }
    // A list that names a plugin which is not there gives no pod a network.
    let plugin = match wanted.as_ref().and_then(Kept::good) {
        Some(wanted) => binary::compare(&places.plugin(), &wanted.plugin_sha256)?,
        None => return Ok(Exit::Done),
    };
    let shown = places.plugin();
    let wrong = match plugin {
        Plugin::Identical => return Ok(Exit::Done),
        Plugin::NoDirectory | Plugin::Missing => "does not exist",
        Plugin::Different => "is not the installed one, or cannot be run",
    };
    log::out(format_args!("plugin: {} {wrong}; run install again", shown.display()));
    Ok(Exit::NotChained)
}

fn want(places: &Places, wanted: Option<&Kept<Wanted>>) -> Want {
    let path = places.wanted();
    match wanted.map(|kept| &kept.parsed) {
        None => Want::Nothing(format!("{} does not exist: nothing is installed", path.display())),
        Some(Parsed::Newer(_)) => Want::Newer,
        Some(Parsed::Damaged(why)) => Want::Nothing(format!("{} is damaged: {why}", path.display())),
        Some(Parsed::Good(wanted)) => match OwnEntry::parse(wanted.entry.to_string().as_bytes()) {
            Ok(own) => Want::Entry(own),
            Err(error) => {
                Want::Nothing(format!("{} holds no entry of ours: {}", path.display(), error_chain(&error)))
            }
        },
    }
}

fn reason(state: &State) -> String {
    match state {
        State::Drifted { how: why } | State::Invalid { why } | State::Unknown { why } => format!(": {why}"),
        State::Stripped => " holds no entry of ours".to_owned(),
        State::Chained | State::NoList | State::Uninstalled => String::new(),
    }
}
