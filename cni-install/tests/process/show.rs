//! `--check` and `--dry-run`: they say how it is and change nothing.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{FLANNEL, LIST, Node, Ran};

#[track_caller]
fn check(node: &Node, code: i32, word: &str) -> Ran {
    let before = node.tree();
    let state = node.state().exists();
    let ran = node.run(&["--check"]).ends(code);
    assert!(ran.out.contains(word), "no {word:?} in {ran:#?}");
    assert_eq!(node.tree(), before);
    assert_eq!(node.state().exists(), state);
    ran
}

#[test]
fn i11_check_says_chained_only_when_it_is() {
    let node = Node::flannel();
    check(&node, 3, "unknown");
    node.install().ends(0);
    let ran = check(&node, 0, "chained: ");
    assert!(ran.out.contains(LIST), "{ran:#?}");
    let chained = node.get(LIST);
    let text = String::from_utf8(chained.clone()).unwrap();

    node.put(LIST, FLANNEL);
    check(&node, 3, "stripped");
    node.put(LIST, text.replace("cni.sock", "other.sock"));
    check(&node, 3, "drifted");
    node.put(LIST, &text[..text.len() / 2]);
    check(&node, 3, "invalid");
    std::fs::remove_file(node.list()).unwrap();
    check(&node, 3, "no-list");
    // Another spelling of the same value is the same.
    node.put(LIST, text.replace("\"addDeadlineSeconds\": 5", "\"addDeadlineSeconds\"  :  5.0"));
    check(&node, 0, "chained");
    node.put(LIST, &chained);
    node.put("05-first.conflist", FLANNEL);
    check(&node, 3, "stripped");
    std::fs::remove_file(node.conf().join("05-first.conflist")).unwrap();
    check(&node, 0, "chained");
    node.uninstall().ends(0);
    check(&node, 3, "uninstalled");
}

#[test]
fn i11_check_is_not_content_with_a_list_whose_plugin_is_missing() {
    let node = Node::flannel();
    node.install().ends(0);
    std::fs::rename(node.plugin(), node.bin().join("away")).unwrap();
    check(&node, 3, "does not exist");
    std::fs::write(node.plugin(), "another").unwrap();
    check(&node, 3, "not the installed one");
}

#[test]
fn i11_dry_run_prints_the_file_the_reason_and_a_diff_that_patch_applies_and_changes_nothing() {
    for list in [FLANNEL.to_owned(), FLANNEL.trim_end().to_owned(), FLANNEL.replace("  ", "\t")] {
        let node = Node::empty();
        node.put(LIST, &list);
        let before = node.tree();
        let ran = node.run(&["--dry-run"]).ends(0).says(&["would install", "would write the wanted state"]);
        assert_eq!(node.tree(), before);
        assert!(!node.state().exists());
        assert!(ran.out.starts_with("list: ") && ran.out.contains("the only file"), "{ran:#?}");
        assert!(
            ran.out.contains("\n--- ") && ran.out.contains("\n+++ ") && ran.out.contains("\n@@ "),
            "{ran:#?}"
        );
        let copy = node.root().join("copy");
        std::fs::write(&copy, &list).unwrap();
        patch(&copy, &ran.out);
        node.install().ends(0);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), String::from_utf8(node.get(LIST)).unwrap());
        let ran = node.run(&["uninstall", "--dry-run"]).ends(0);
        patch(&copy, &ran.out);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), list);
        assert_eq!(node.ours(LIST).len(), 1);
    }
}

#[track_caller]
fn patch(file: &std::path::Path, diff: &str) {
    let mut child = Command::new("patch")
        .args(["--quiet", "--no-backup-if-mismatch"])
        .arg(file)
        .stdin(Stdio::piped())
        .spawn()
        .expect("this test needs patch: apt-get install patch");
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{diff}");
}

#[test]
fn i11_dry_run_says_what_an_install_would_end_with() {
    let node = Node::empty();
    node.run(&["--dry-run"]).ends(3).says(&["would wait", "holds no file"]);
    node.put(LIST, FLANNEL);
    node.install().ends(0);
    let ran = node.run(&["--dry-run"]).ends(0);
    assert!(ran.out.starts_with("unchanged: ") && ran.err.is_empty(), "{ran:#?}");
    node.uninstall().ends(0);
    node.run(&["--dry-run"]).ends(4).says(&["uninstalled"]);
    let ran = node.run(&["uninstall", "--dry-run"]).ends(0);
    assert!(ran.out.contains("no list holds our entry"), "{ran:#?}");
    node.run(&["--dry-run", "--force"]).ends(0).says(&["would remove the marker"]);
}

#[test]
fn i11_nothing_but_answers_goes_to_standard_output() {
    let node = Node::flannel();
    for args in [&["--no-wait"][..], &["uninstall"], &["--no-wait"]] {
        let ran = node.run(args);
        assert_eq!(ran.out, "", "{ran:#?}");
        assert!(ran.err.lines().all(|line| line.starts_with("aether-cni-install: ")), "{ran:#?}");
    }
}

#[test]
fn i11_closed_standard_streams_are_no_reason_to_stop_half_way() {
    let node = Node::flannel();
    let shell = |args: &str| {
        Command::new("/bin/sh")
            .args(["-c", &format!("exec \"$0\" \"$@\" {args} >&- 2>&- <&-"), crate::support::PROGRAM])
            .args(node.args())
            .output()
            .unwrap()
    };
    assert!(shell("--no-wait").status.success());
    assert_eq!(node.ours(LIST).len(), 1);
    assert!(shell("--check").status.success());
    assert!(shell("uninstall").status.success());
    assert_eq!(node.get(LIST), FLANNEL.as_bytes());
}
