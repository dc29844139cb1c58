//! Which of two installs is the earlier one (I01).
//!
//! The chart names an install `release/revision`; Helm counts revisions up, also on a rollback. Any other word says
//! nothing about order: only its equal is "that install", and no other word is earlier.

use aether_domain::ids::InstallId;

/// Whether `id` is `other` or an earlier install of the same release.
pub fn same_or_earlier(id: &InstallId, other: &InstallId) -> bool {
    match (numbered(id), numbered(other)) {
        (Some((release, revision)), Some((other_release, other_revision))) => {
            release == other_release && revision <= other_revision
        }
        _ => id == other,
    }
}

/// The id that an uninstall writes into its marker: that of what it removes, `known`, unless the uninstall itself was
/// called as a later one of the same release.
pub fn removed(known: Option<InstallId>, called: Option<&InstallId>) -> Option<InstallId> {
    match (known, called) {
        (Some(known), Some(called)) if same_or_earlier(&known, called) => Some(called.clone()),
        (Some(known), _) => Some(known),
        (None, called) => called.cloned(),
    }
}

/// Release and revision. The last `/` divides; leading zeros do not matter.
fn numbered(id: &InstallId) -> Option<(&str, u64)> {
    let (release, revision) = id.as_str().rsplit_once('/')?;
    let digits = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
    if release.is_empty() || !digits {
        return None;
    }
    revision.parse().ok().map(|revision| (release, revision))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(text: &str) -> InstallId {
        text.parse().unwrap()
    }

    #[test]
    fn i01_earlier_is_a_lower_revision_of_the_same_release() {
        for (first, second, expected) in [
            ("mesh/3", "mesh/3", true),
            ("mesh/2", "mesh/3", true),
            ("mesh/4", "mesh/3", false),
            ("mesh/9", "mesh/10", true),
            ("mesh/10", "mesh/9", false),
            ("other/2", "mesh/3", false),
            ("ns/mesh/2", "ns/mesh/3", true),
            ("manual", "manual", true),
            ("a", "b", false),
            ("mesh", "mesh/3", false),
            ("mesh/x", "mesh/3", false),
            ("mesh/", "mesh/", true),
            ("mesh/99999999999999999999", "mesh/3", false),
        ] {
            assert_eq!(same_or_earlier(&id(first), &id(second)), expected, "{first} {second}");
        }
    }

    #[test]
    fn i01_the_marker_names_what_was_removed_or_the_later_call() {
        let removed = |known: Option<&str>, called: Option<&str>| {
            super::removed(known.map(id), called.map(id).as_ref()).map(String::from)
        };
        assert_eq!(removed(Some("m/3"), Some("m/4")).unwrap(), "m/4");
        assert_eq!(removed(Some("m/3"), Some("m/2")).unwrap(), "m/3");
        assert_eq!(removed(Some("m/3"), Some("other/9")).unwrap(), "m/3");
        assert_eq!(removed(Some("m/3"), None).unwrap(), "m/3");
        assert_eq!(removed(None, Some("m/2")).unwrap(), "m/2");
        assert_eq!(removed(None, None), None);
    }

    proptest! {
        #[test]
        fn i01_whatever_was_removed_is_refused_afterwards(
            known in "[a-b]{1,2}(/[0-9]{1,3})?", called in "[a-b]{1,2}(/[0-9]{1,3})?",
        ) {
            let marker = removed(Some(id(&known)), Some(&id(&called))).unwrap();
            prop_assert!(same_or_earlier(&id(&known), &marker));
        }
    }
}
