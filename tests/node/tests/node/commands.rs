//! The node that stays, as `cargo xtask up`, `roll`, `shell` and `down` run it.

use std::path::Path;
use std::process::Command;

use aether_harness::tools;
use anyhow::Context as _;

/// What one command printed; it must end well.
fn node(verb: &str, dir: &Path, more: &[&str]) -> anyhow::Result<String> {
    let program = tools::program_under_test("aether-node")?;
    let output = Command::new(program).arg(verb).arg("--dir").arg(dir).args(more).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{verb}: {}\n{text}\n{complaint}", output.status);
    Ok(text + &complaint)
}

/// The node, which goes with the test whatever becomes of it.
struct Stays<'a>(&'a Path);

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        // A test that fails has said more than this could.
        let _ = node("down", self.0, &[]);
    }
}

/// How many processes see the node's mounts.
fn inside(namespace: &Path) -> anyhow::Result<usize> {
    let processes = std::fs::read_dir("/proc")?.flatten();
    let of = |process: &std::fs::DirEntry| std::fs::read_link(process.path().join("ns/mnt"));
    Ok(processes.filter(|process| of(process).is_ok_and(|own| own == namespace)).count())
}

/// The pid in `text`, which says that a node is up.
fn pid(text: &str) -> anyhow::Result<u32> {
    let after = text.split("(pid ").nth(1).context("no pid")?;
    Ok(after.split(')').next().unwrap_or_default().parse()?)
}

#[test]
fn t10_up_rolls_under_load_roll_does_another_and_down_leaves_nothing() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let dir = place.path().join("node");
    let stays = Stays(&dir);
    let text = node("up", &dir, &[])?;
    for words in [
        "held it again after",
        "the annotation example.com/team is missing",
        "conflist-reassert",
        "calls that failed",
        "cni handed-over",
    ] {
        assert!(text.contains(words), "{words:?} is not in\n{text}");
    }
    let text = node("up", &dir, &[])?;
    assert!(text.contains("nothing is changed"), "{text}");
    let namespace = std::fs::read_link(format!("/proc/{}/ns/mnt", pid(&text)?))?;
    assert!(inside(&namespace)? > 3);
    let text = node("roll", &dir, &[])?;
    assert!(text.contains("records lost") && text.contains("cni handed-over"), "{text}");
    let text = node("exec", &dir, &["--", "aetherctl", "chain"])?;
    assert!(text.contains("chained"), "{text}");
    let text = node("down", &dir, &[])?;
    assert!(text.contains("removed the node"), "{text}");
    assert_eq!(inside(&namespace)?, 0);
    assert_eq!(std::fs::read_dir(place.path())?.count(), 0);
    let text = node("down", &dir, &[])?;
    assert!(text.contains("nothing to remove"), "{text}");
    drop(stays);
    Ok(())
}
