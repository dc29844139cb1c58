use super::*;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn i08_a_new_file_has_the_given_mode_and_nothing_else_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    replace(&path, b"one", &Attributes::with_mode(0o640)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn i08_a_replaced_file_keeps_mode_owner_and_xattrs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"one").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    std::os::unix::fs::chown(&path, Some(12), Some(34)).unwrap();
    xattr::set(&path, "user.label", b"kept").unwrap();
    replace(&path, b"two", &Attributes::of(&path).unwrap()).unwrap();
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.gid()), (0o604, 12, 34));
    assert_eq!(xattr::get(&path, "user.label").unwrap().unwrap(), b"kept");
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
}

#[test]
fn i12_a_failed_replace_leaves_the_old_file_and_no_temporary_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::create_dir(&path).unwrap();
    let error = replace(&path, b"x", &Attributes::with_mode(0o600)).unwrap_err();
    assert_eq!(error.operation, "rename over");
    assert_eq!(error.path, path);
    assert_eq!(names(dir.path()), ["a"]);
}

#[test]
fn i12_an_error_names_path_operation_uid_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    let error = replace(&dir.path().join("no/such"), b"x", &Attributes::with_mode(0o600)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("open the directory") && text.contains("no") && text.contains("uid 0"), "{text}");
}

#[test]
fn i12_leftovers_of_killed_runs_are_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".aether-tmp-0000000000000001"), b"x").unwrap();
    std::fs::write(dir.path().join(".10-flannel.conflist.tmp"), b"x").unwrap();
    assert_eq!(sweep_temporaries(dir.path()).unwrap(), 1);
    assert_eq!(names(dir.path()), [".10-flannel.conflist.tmp"]);
}

#[test]
fn removing_twice_says_absent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"x").unwrap();
    assert_eq!(remove(&path).unwrap(), Removed::Yes);
    assert_eq!(remove(&path).unwrap(), Removed::Absent);
    assert_eq!(remove(&dir.path().join("none/a")).unwrap(), Removed::Absent);
}

#[test]
fn c02_a_replacement_whose_condition_no_longer_holds_leaves_the_old_file_and_no_temporary_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, b"old").unwrap();
    let attributes = Attributes::with_mode(0o600);
    assert_eq!(replace_when(&path, b"new", &attributes, || false).unwrap(), Replaced::No);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["a"]);
    assert_eq!(replace_when(&path, b"new", &attributes, || true).unwrap(), Replaced::Yes);
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
}

#[test]
fn i12_a_locked_replacement_leaves_at_most_one_temporary_file_and_no_other_writers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("uninstalled");
    for (name, content) in
        [(".aether-tmp-uninstalled", "of a killed run"), (".aether-tmp-0000000000000001", "of another")]
    {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    replace_locked(&path, b"x", &Attributes::with_mode(0o600)).unwrap();
    assert_eq!(names(dir.path()), [".aether-tmp-0000000000000001", "uninstalled"]);
    assert_eq!(sweep_temporary_of(&path).unwrap(), Removed::Absent);
}
