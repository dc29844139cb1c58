//! Whether a list that a module hands back differs from the one on the node in nothing but our own entry (M03): whatever
//! the module says, nobody else's entry is moved, altered or dropped, and ours stands last or where it stood (I09).

use aether_conflist::edit;
use aether_conflist::load::{DropIns, List};
use aether_conflist::own::OwnEntry;

use crate::ports::ConflistView;

/// Why a list is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpliceError {
    /// The module looked at another state of the file.
    #[error("{file} is no longer what the module read")]
    Changed {
        /// The file.
        file: String,
    },
    /// Nothing is wanted on this node.
    #[error("there is no entry to put into {file}: uninstalled, or none is known")]
    NothingWanted {
        /// The file.
        file: String,
    },
    /// The file is no list that a runtime takes.
    #[error("{file} is no list that is ever edited: {why}")]
    NoList {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// The new bytes are no list that a runtime takes.
    #[error("the new {file} would not be loaded: {why}")]
    Unsound {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// Something outside our entry differs.
    #[error("the new {file} changes something outside the entry of aether-cni")]
    Foreign {
        /// The file.
        file: String,
    },
    /// Our entry stands where it would be run before what it needs.
    #[error(
        "the new {file} puts the entry of aether-cni before others, where it did not stand: it stands last, or where it stood"
    )]
    Place {
        /// The file.
        file: String,
    },
    /// Our entry is not the wanted one, or not there once.
    #[error(
        "the new {file} holds {found} entries of aether-cni that are the wanted one, of {all}, where one is wanted"
    )]
    NotWanted {
        /// The file.
        file: String,
        /// How many are right.
        found: usize,
        /// How many there are.
        all: usize,
    },
}

/// Checks that putting `bytes` in place of the file named `name` changes our own entry only, towards the wanted one.
pub(crate) fn check(view: &ConflistView, name: &str, expect: &str, bytes: &[u8]) -> Result<(), SpliceError> {
    let file = || name.to_owned();
    let current = view.files.iter().find(|file| file.name == name && file.digest == expect);
    let current = current.ok_or_else(|| SpliceError::Changed { file: file() })?;
    let wanted = view.wanted.as_deref().ok_or_else(|| SpliceError::NothingWanted { file: file() })?;
    let no_list = |why: String| SpliceError::NoList { file: file(), why };
    let unsound = |why: String| SpliceError::Unsound { file: file(), why };
    let wanted = OwnEntry::parse(wanted).map_err(|error| no_list(error.to_string()))?;
    let load = |bytes: &[u8]| List::load(name, bytes, DropIns::none());
    let old = load(&current.bytes).map_err(|refusal| no_list(refusal.to_string()))?;
    let new = load(bytes).map_err(|refusal| unsound(refusal.to_string()))?;
    let old_rest = edit::remove(&old).map_err(|error| no_list(error.to_string()))?;
    let new_rest = edit::remove(&new).map_err(|error| unsound(error.to_string()))?;
    if old_rest != new_rest {
        return Err(SpliceError::Foreign { file: file() });
    }
    let (all, found) = (new.ours().count(), new.ours().filter(|entry| wanted.equals(entry)).count());
    if (all, found) != (1, 1) {
        return Err(SpliceError::NotWanted { file: file(), found, all });
    }
    if !edit::keeps_place(&old, &new) {
        return Err(SpliceError::Place { file: file() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ConflistFile;

    const LIST: &str = r#"{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {"type": "flannel", "delegate": {"hairpinMode": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
"#;
    const WANTED: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock"}"#;

    fn view() -> ConflistView {
        let file = ConflistFile {
            name: "10-flannel.conflist".into(),
            digest: "d".into(),
            bytes: LIST.as_bytes().into(),
            uid: 0,
            modified: 0,
        };
        ConflistView { files: vec![file], wanted: Some(WANTED.into()), ..ConflistView::default() }
    }

    fn put() -> String {
        let list = List::load("10-flannel.conflist", LIST.as_bytes(), DropIns::none()).unwrap();
        String::from_utf8(edit::put(&list, &OwnEntry::parse(WANTED.as_bytes()).unwrap()).unwrap()).unwrap()
    }

    fn look(view: &ConflistView, bytes: &str) -> Result<(), SpliceError> {
        check(view, "10-flannel.conflist", "d", bytes.as_bytes())
    }

    #[test]
    fn m03_our_own_entry_may_be_put_back() {
        look(&view(), &put()).unwrap();
    }

    #[test]
    fn m03_whatever_changes_somebody_elses_entry_is_refused() {
        let good = put();
        for (what, bytes) in [
            ("a value in another entry", good.replace("\"hairpinMode\": true", "\"hairpinMode\": false")),
            ("the network's name", good.replace("cbr0", "cbr1")),
            ("the version", good.replace("0.3.1", "1.0.0")),
            ("white space in another entry", good.replace("\"hairpinMode\": true", "\"hairpinMode\":true")),
            (
                "another entry dropped",
                good.replace("    {\"type\": \"flannel\", \"delegate\": {\"hairpinMode\": true}},\n", ""),
            ),
            ("another entry's type", good.replace("portmap", "bandwidth")),
            ("a foreign entry added", good.replace("[\n", "[\n    {\"type\": \"evil\"},\n")),
            ("a top-level key", good.replace("\"plugins\"", "\"disableCheck\": true, \"plugins\"")),
        ] {
            assert_ne!(bytes, good, "{what}: the case changes nothing");
            let refused = look(&view(), &bytes).unwrap_err();
            assert!(matches!(refused, SpliceError::Foreign { .. }), "{what}: {refused}");
        }
    }

    #[test]
    fn m03_i09_ours_stands_last_or_where_it_stood_and_the_others_keep_their_order() {
        let flannel = r#"{"type": "flannel", "delegate": {"hairpinMode": true}}"#;
        let portmap = r#"{"type": "portmap", "capabilities": {"portMappings": true}}"#;
        let old = WANTED.replace("cni.sock", "old.sock");
        let list = |entries: &[&str]| {
            let entries = entries.join(",\n    ");
            format!(
                "{{\n  \"name\": \"cbr0\",\n  \"cniVersion\": \"0.3.1\",\n  \"plugins\": [\n    {entries}\n  ]\n}}\n"
            )
        };
        assert_eq!(list(&[flannel, portmap]), LIST);
        let seen = |entries: &[&str]| {
            let mut view = view();
            view.files[0].bytes = list(entries).as_bytes().into();
            view
        };
        for (what, before, after) in [
            ("last", &[flannel, portmap][..], &[flannel, portmap, WANTED][..]),
            ("last again", &[&old, flannel, portmap], &[flannel, portmap, WANTED]),
            ("altered, between", &[flannel, &old, portmap], &[flannel, WANTED, portmap]),
            ("doubled", &[&old, flannel, &old, portmap], &[flannel, WANTED, portmap]),
        ] {
            look(&seen(before), &list(after)).unwrap_or_else(|refused| panic!("{what}: {refused}"));
        }
        for (what, before, after) in [
            ("first", &[flannel, portmap][..], &[WANTED, flannel, portmap][..]),
            ("between", &[flannel, portmap], &[flannel, WANTED, portmap]),
            ("moved to the front", &[flannel, portmap, &old], &[WANTED, flannel, portmap]),
            ("left at the front", &[&old, flannel, portmap], &[WANTED, flannel, portmap]),
            ("moved", &[&old, flannel, portmap], &[flannel, WANTED, portmap]),
            ("the front one of a double", &[&old, flannel, &old, portmap], &[WANTED, flannel, portmap]),
        ] {
            let refused = look(&seen(before), &list(after)).unwrap_err();
            assert!(matches!(refused, SpliceError::Place { .. }), "{what}: {refused}");
        }
        let swapped = look(&view(), &list(&[portmap, flannel, WANTED])).unwrap_err();
        assert!(matches!(swapped, SpliceError::Foreign { .. }), "{swapped}");
    }

    #[test]
    fn c03_m03_an_entry_of_ours_that_is_not_the_wanted_one_is_refused() {
        let other = put().replace("/run/aether/cni.sock", "/tmp/evil.sock");
        assert!(matches!(
            look(&view(), &other).unwrap_err(),
            SpliceError::NotWanted { found: 0, all: 1, .. }
        ));
        assert!(matches!(look(&view(), LIST).unwrap_err(), SpliceError::NotWanted { found: 0, all: 0, .. }));
        let nothing = ConflistView { wanted: None, ..view() };
        assert!(matches!(look(&nothing, &put()).unwrap_err(), SpliceError::NothingWanted { .. }));
    }

    #[test]
    fn c02_c04_m03_another_state_of_the_file_and_broken_bytes_are_refused() {
        let stale = check(&view(), "10-flannel.conflist", "other", put().as_bytes());
        assert!(matches!(stale.unwrap_err(), SpliceError::Changed { .. }));
        assert!(matches!(look(&view(), "{").unwrap_err(), SpliceError::Unsound { .. }));
        assert!(matches!(look(&view(), "").unwrap_err(), SpliceError::Unsound { .. }));
        let mut invalid = view();
        if let Some(file) = invalid.files.first_mut() {
            file.bytes = b"{".as_slice().into();
        }
        assert!(matches!(look(&invalid, &put()).unwrap_err(), SpliceError::NoList { .. }));
    }
}
