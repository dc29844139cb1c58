//! Replacing a list: what is inspected, wanted and allowed.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use aether_domain::chain::Healthy;

use crate::support::{ENTRY, FLANNEL, LIST, NEWER, Node, chained, chained_text, digest, is};

#[test]
fn c02_i08_a_stripped_list_gets_the_entry_and_keeps_mode_owner_and_xattrs() {
    let node = Node::flannel();
    let path = node.conf().join(LIST);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::chown(&path, Some(12), Some(13)).unwrap();
    xattr::set(&path, "user.x", b"y").unwrap();
    is(&node.repair(ENTRY), "done", &[LIST]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, ENTRY));
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.gid()), (0o640, 12, 13));
    assert_eq!(xattr::get(&path, "user.x").unwrap().as_deref(), Some(&b"y"[..]));
    assert!(node.temporaries().is_empty());
}

#[test]
fn c02_a_list_that_is_not_the_inspected_generation_stays() {
    let node = Node::flannel();
    let new = chained(FLANNEL, ENTRY);
    is(&node.keeper().replace_list(LIST, &digest(b"other"), &new, || true), "conflict", &["was changed"]);
    // It changes while everything is ready: at the last question.
    let asked = AtomicUsize::new(0);
    let changed = FLANNEL.replace("portmap", "bandwidth");
    let still = || {
        if asked.fetch_add(1, Ordering::SeqCst) == 1 {
            node.put(LIST, &changed);
        }
        true
    };
    let outcome = node.keeper().replace_list(LIST, &digest(FLANNEL.as_bytes()), &new, still);
    is(&outcome, "conflict", &["was changed"]);
    assert_eq!(node.get(LIST), changed);
    std::fs::remove_file(node.conf().join(LIST)).unwrap();
    is(&node.keeper().replace_list(LIST, &digest(b""), &new, || true), "conflict", &[]);
    assert!(!node.has(LIST) && node.temporaries().is_empty());
}

#[test]
fn c02_t_a_right_that_is_lost_at_the_last_moment_changes_nothing() {
    let node = Node::flannel();
    // The lock's question, then the one before the rename.
    for lost_at in 0..2 {
        let asked = AtomicUsize::new(0);
        let still = || asked.fetch_add(1, Ordering::SeqCst) != lost_at;
        let new = chained(FLANNEL, ENTRY);
        let outcome = node.keeper().replace_list(LIST, &digest(FLANNEL.as_bytes()), &new, still);
        is(&outcome, "conflict", &[]);
        assert_eq!(node.get(LIST), FLANNEL, "lost at {lost_at}");
        assert!(asked.load(Ordering::SeqCst) > lost_at);
    }
    assert!(node.temporaries().is_empty());
}

#[test]
fn c03_an_uninstalled_node_is_left_alone_whatever_is_asked() {
    let node = Node::flannel();
    std::fs::write(node.state().join("uninstalled"), "").unwrap();
    is(&node.repair(ENTRY), "refused", &["uninstalled"]);
    is(&node.derive(LIST), "refused", &["uninstalled"]);
    is(&node.keeper().restore_plugin(&node.source(), || true), "refused", &["uninstalled"]);
    let healthy = Healthy::new(serde_json::json!({"type": "aether-cni"}), None, None, 1);
    is(&node.keeper().remember(&healthy, || true), "refused", &["uninstalled"]);
    assert_eq!(node.get(LIST), FLANNEL);
    assert!(!node.plugin().exists() && !node.state().join("chain.json").exists());
}

#[test]
fn c03_an_upgrade_is_never_undone_by_an_older_entry() {
    let node = Node::flannel();
    let old = chained_text(FLANNEL, ENTRY);
    node.put(LIST, &old);
    // The installer writes its wanted state and then the list; an older agent is in between with what it saw before.
    node.want(NEWER);
    is(&node.repair(ENTRY), "conflict", &["wanted now"]);
    node.put(LIST, chained(FLANNEL, NEWER));
    is(&node.repair(ENTRY), "conflict", &["wanted now"]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, NEWER));
}

#[test]
fn c03_a_newer_format_is_answered_only_where_ours_is_gone_and_with_the_last_entry_seen() {
    let node = Node::flannel();
    node.want_newer();
    is(&node.repair(ENTRY), "refused", &["newer release"]);
    let healthy = Healthy::new(serde_json::from_str(ENTRY).unwrap(), None, None, 1);
    is(&node.keeper().remember(&healthy, || true), "done", &[]);
    is(&node.repair(NEWER), "conflict", &[]);
    is(&node.repair(ENTRY), "done", &[]);
    node.put(LIST, chained(FLANNEL, NEWER));
    is(&node.repair(ENTRY), "conflict", &[]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, NEWER), "an entry that stands is never altered");
}

#[test]
fn c03_a_wiped_directory_is_repaired_with_what_was_remembered() {
    let node = Node::flannel();
    let healthy = Healthy::new(serde_json::from_str(ENTRY).unwrap(), None, None, 1);
    is(&node.keeper().remember(&healthy, || true), "done", &[]);
    std::fs::remove_dir_all(node.conf()).unwrap();
    std::fs::create_dir(node.conf()).unwrap();
    node.put(LIST, FLANNEL);
    is(&node.repair(ENTRY), "done", &[]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, ENTRY));
}

#[test]
fn i07_bytes_that_are_no_list_or_hold_only_ours_are_refused() {
    let node = Node::flannel();
    for bytes in [&b"{"[..], b"", format!(r#"{{"name":"n","plugins":[{ENTRY},{ENTRY}]}}"#).as_bytes()] {
        let outcome = node.keeper().replace_list(LIST, &digest(FLANNEL.as_bytes()), bytes, || true);
        assert!(matches!(outcome.name(), "refused" | "conflict"), "{outcome:?}");
    }
    for name in ["../x.conflist", "", "..", "a/b"] {
        is(&node.keeper().replace_list(name, "", b"", || true), "refused", &["names no file"]);
    }
    assert_eq!(node.get(LIST), FLANNEL);
}

#[test]
fn m03_i09_what_moves_or_alters_more_than_our_own_entry_is_refused_at_the_last_moment_too() {
    let right = chained_text(FLANNEL, ENTRY);
    let first = FLANNEL.replace("\"plugins\": [", &format!("\"plugins\": [\n    {ENTRY},"));
    let between =
        FLANNEL.replace("{\"type\": \"portmap\"}", &format!("{ENTRY},\n    {{\"type\": \"portmap\"}}"));
    let swapped = right.replace("flannel", "x").replace("portmap", "flannel").replace("\"x\"", "\"portmap\"");
    for (what, new, words) in [
        ("ours first", first, "before others"),
        ("ours between", between, "before others"),
        ("two foreign entries swapped", swapped, "outside our entry"),
        ("another value", right.replace("cbr0", "cbr1"), "outside our entry"),
    ] {
        assert_ne!(new, right, "{what}");
        let node = Node::flannel();
        let outcome = node.keeper().replace_list(LIST, &digest(FLANNEL.as_bytes()), new.as_bytes(), || true);
        assert_eq!(outcome.name(), "refused", "{what}: {outcome:?}");
        is(&outcome, "refused", &[words]);
        assert_eq!(node.get(LIST), FLANNEL, "{what}");
    }
}

#[test]
fn c03_i09_an_altered_entry_is_put_right_where_it_stands() {
    let node = Node::flannel();
    let list = |ours: &str| {
        FLANNEL.replace("{\"type\": \"portmap\"}", &format!("{ours},\n    {{\"type\": \"portmap\"}}"))
    };
    node.put(LIST, list(NEWER));
    is(&node.repair(ENTRY), "done", &[]);
    assert_eq!(
        node.get(LIST),
        list(ENTRY).replace(ENTRY, r#"{"name": "aether", "type": "aether-cni", "v": 1}"#)
    );
}

#[test]
fn i01_the_lock_is_waited_for_and_the_right_is_asked_meanwhile() {
    let node = Node::flannel();
    let held = aether_durable::lock::Lock::take(&node.state().join("edit.lock")).unwrap();
    let asked = AtomicUsize::new(0);
    let new = chained(FLANNEL, ENTRY);
    let still = || asked.fetch_add(1, Ordering::SeqCst) < 3;
    is(&node.keeper().replace_list(LIST, &digest(FLANNEL.as_bytes()), &new, still), "conflict", &["right"]);
    assert_eq!(asked.load(Ordering::SeqCst), 4);
    std::thread::scope(|scope| {
        let repair = scope.spawn(|| node.repair(ENTRY));
        drop(held);
        is(&repair.join().unwrap(), "done", &[]);
    });
}
