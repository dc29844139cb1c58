//! Every list that is known from a real network, and every spelling of one: `tests/fixtures/conflists/index.toml` names
//! them with what libcni makes of each.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::support::Node;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/conflists")
}

#[derive(Debug, serde::Deserialize)]
struct Index {
    list: Vec<Fixture>,
}

#[derive(Debug, serde::Deserialize)]
struct Fixture {
    owner: String,
    file: PathBuf,
    verdict: String,
    #[serde(default)]
    reason: String,
}

/// Copies a directory's content.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// A node with the list as the one that its runtime loads, and what lies beside it where that does not come first.
fn node(fixture: &Fixture) -> Node {
    let node = Node::empty();
    let path = fixtures().join(&fixture.file);
    let (folder, name) = (path.parent().unwrap(), path.file_name().unwrap());
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = names.filter(|entry| !entry.path().is_dir()).map(|entry| entry.file_name());
    let order: Vec<OsString> = aether_conflist::load::candidates(files);
    if order.first().is_some_and(|first| first == name) {
        copy(folder, &node.conf());
    } else {
        std::fs::copy(&path, node.conf().join(name)).unwrap();
    }
    node
}

/// Whether a single configuration is Multus's, as OpenShift runs it (I13).
fn delegates(bytes: &[u8]) -> bool {
    let conf: serde_json::Value = serde_json::from_slice(bytes).unwrap();
    ["multus", "multus-shim", "error-cni"].iter().any(|plugin| conf["type"] == *plugin)
}

#[test]
fn i02_i07_i14_every_known_list_takes_our_entry_and_comes_back_byte_for_byte_or_is_refused_and_untouched() {
    let index = fixtures().join("index.toml");
    let text = std::fs::read_to_string(&index).unwrap_or_else(|error| {
        panic!("{}, which lies in this repository, cannot be read: {error}", index.display())
    });
    let lists = toml::from_str::<Index>(&text).unwrap().list;
    assert!(lists.len() > 50, "only {} lists in {}", lists.len(), index.display());
    for fixture in &lists {
        let node = node(fixture);
        let before = node.tree();
        let ran = node.install();
        let name = fixture.file.file_name().unwrap().to_string_lossy();
        let context = format!("{fixture:?}: {ran:#?}");
        assert!(ran.err.contains(&*name), "{context}");
        let code = match fixture.verdict.as_str() {
            "only ours" => 4,
            "single" if delegates(&node.get(&name)) => 4,
            // A list is derived from it (I06).
            "valid" | "single" => 0,
            "loopback" => 3,
            refused if refused.starts_with("refused by ") => {
                assert!(ran.err.contains(&fixture.reason), "{context}");
                3
            }
            other => panic!("{}: unknown verdict {other:?}", fixture.owner),
        };
        assert_eq!(ran.code, Some(code), "{context}");
        if code == 0 {
            let list =
                if fixture.verdict == "single" { format!("00-aether-{name}.conflist") } else { name.into() };
            assert!(String::from_utf8_lossy(&node.get(&list)).contains("\"aether-cni\""), "{context}");
            node.run(&["--check"]).ends(0);
            node.install().ends(0);
        } else {
            assert_eq!(node.run(&["--check"]).code, Some(3), "{context}");
        }
        let listed = fixture.verdict == "only ours";
        if listed {
            assert_eq!(node.tree(), before, "{context}");
            continue;
        }
        node.run(&["uninstall", "--remove-binary"]).ends(0);
        assert_eq!(node.tree(), before, "{context}");
    }
}
