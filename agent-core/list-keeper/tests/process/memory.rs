//! `chain.json` (C03).

use std::os::unix::fs::MetadataExt as _;

use aether_domain::chain::Healthy;
use aether_list_keeper::Recalled;

use crate::support::{ENTRY, Node, is};

fn healthy(at: u64) -> Healthy {
    Healthy::new(serde_json::from_str(ENTRY).unwrap(), Some("ab".into()), Some("m/1".parse().unwrap()), at)
}

#[test]
fn c03_what_was_healthy_is_written_once_and_read_back() {
    let node = Node::flannel();
    let keeper = node.keeper();
    assert_eq!(keeper.recall(), Recalled::Nothing);
    is(&keeper.remember(&healthy(1), || true), "done", &["written down"]);
    let path = node.state().join("chain.json");
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o600);
    is(&keeper.remember(&healthy(2), || true), "done", &["already"]);
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), meta.ino());
    assert_eq!(keeper.recall(), Recalled::Known(healthy(1)));
    is(&keeper.remember(&Healthy { plugin_sha256: None, ..healthy(3) }, || false), "conflict", &[]);
    is(&keeper.remember(&Healthy { plugin_sha256: None, ..healthy(3) }, || true), "done", &[]);
    assert!(matches!(keeper.recall(), Recalled::Known(known) if known.observed_at == 3));
}

#[test]
fn c03_s02_a_newer_file_is_left_alone_and_a_damaged_one_is_put_aside() {
    let node = Node::flannel();
    let path = node.state().join("chain.json");
    let newer = r#"{"format":9,"oldestReader":9}"#;
    std::fs::write(&path, newer).unwrap();
    assert_eq!(node.keeper().recall(), Recalled::Newer);
    is(&node.keeper().remember(&healthy(1), || true), "refused", &["newer release"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    for round in 0..12 {
        std::fs::write(&path, format!("{{{round}")).unwrap();
        assert!(matches!(node.keeper().recall(), Recalled::Damaged(_)));
        is(&node.keeper().remember(&healthy(round), || true), "done", &[]);
        assert_eq!(node.keeper().recall(), Recalled::Known(healthy(round)));
        // pause: two of one millisecond would be one file.
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let aside = std::fs::read_dir(node.state()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("chain.json.corrupt-")
    });
    assert_eq!(aside.count(), 10);
}
