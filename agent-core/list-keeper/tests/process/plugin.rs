//! The plugin's binary (C10).

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use aether_domain::chain::Healthy;

use crate::support::{BINARY, ENTRY, Node, digest, is};

#[test]
fn c10_a_binary_that_is_missing_changed_or_not_runnable_comes_back_as_the_wanted_one() {
    let node = Node::flannel();
    let plugin = node.plugin();
    let spoils: [&dyn Fn(); 4] = [
        &|| {},
        &|| std::fs::write(&plugin, b"other").unwrap(),
        &|| std::fs::write(&plugin, b"").unwrap(),
        &|| std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o600)).unwrap(),
    ];
    for spoil in spoils {
        spoil();
        is(&node.keeper().restore_plugin(&node.source(), || true), "done", &["put"]);
        assert_eq!(std::fs::read(&plugin).unwrap(), BINARY);
        assert_eq!(std::fs::metadata(&plugin).unwrap().mode() & 0o7777, 0o755);
    }
    is(&node.keeper().restore_plugin(&node.source(), || true), "done", &["is the wanted one"]);
    std::fs::remove_file(&plugin).unwrap();
    is(&node.keeper().restore_plugin(&node.source(), || false), "conflict", &[]);
    assert!(!plugin.exists());
}

#[test]
fn c10_only_the_wanted_hash_is_ever_put_there() {
    let node = Node::flannel();
    std::fs::write(node.source(), b"another release").unwrap();
    is(&node.keeper().restore_plugin(&node.source(), || true), "refused", &["SHA-256", "another release"]);
    assert!(!node.plugin().exists());
    node.want_newer();
    std::fs::write(node.source(), BINARY).unwrap();
    is(&node.keeper().restore_plugin(&node.source(), || true), "refused", &["unknown"]);
    std::fs::remove_file(node.source()).unwrap();
    node.want(ENTRY);
    is(&node.keeper().restore_plugin(&node.source(), || true), "failed", &["no plugin at"]);
    assert!(!node.plugin().exists());
}

#[test]
fn c10_c03_without_a_wanted_state_the_remembered_hash_counts() {
    let node = Node::flannel();
    std::fs::remove_file(node.conf().join(".aether-cni-entry")).unwrap();
    is(&node.keeper().restore_plugin(&node.source(), || true), "refused", &["unknown"]);
    let entry = serde_json::from_str(ENTRY).unwrap();
    let healthy = Healthy::new(entry, Some(digest(BINARY)), None, 1);
    is(&node.keeper().remember(&healthy, || true), "done", &[]);
    is(&node.keeper().restore_plugin(&node.source(), || true), "done", &[]);
    assert_eq!(std::fs::read(node.plugin()).unwrap(), BINARY);
}
