//! What a look at the directory means for what is loaded (M08): only content counts, so that a swap of links, a copy
//! over the file and a touch of it are told apart by what they changed.

use std::collections::BTreeMap;

use crate::manifest::Name;

/// What a module's files hold, in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) String);

/// What is to be done about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Its files say something new.
    Load,
    /// Its files are gone.
    Remove,
}

/// Compares what was loaded with what was found.
pub(crate) fn changes(
    loaded: &BTreeMap<Name, Fingerprint>,
    found: &BTreeMap<Name, Fingerprint>,
) -> Vec<(Name, Change)> {
    let load = found.iter().filter(|(name, print)| loaded.get(*name) != Some(print));
    let remove = loaded.keys().filter(|name| !found.contains_key(*name));
    let load = load.map(|(name, _)| (name.clone(), Change::Load));
    load.chain(remove.map(|name| (name.clone(), Change::Remove))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m08_only_what_changed_is_loaded_again_and_what_is_gone_is_removed() {
        let set = |names: &[(&str, &str)]| -> BTreeMap<Name, Fingerprint> {
            let pair = |(name, print): &(&str, &str)| {
                (Name::try_from((*name).to_owned()).unwrap(), Fingerprint((*print).to_owned()))
            };
            names.iter().map(pair).collect()
        };
        let changes =
            changes(&set(&[("a", "1"), ("b", "1"), ("c", "1")]), &set(&[("a", "1"), ("b", "2"), ("d", "1")]));
        let said: Vec<_> = changes.iter().map(|(name, change)| (name.as_str(), *change)).collect();
        assert_eq!(said, [("b", Change::Load), ("d", Change::Load), ("c", Change::Remove)]);
    }
}
