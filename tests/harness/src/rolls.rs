//! `roll`: one more roll of the node that `up` left, under load, and its figures.

use std::path::Path;

use aether_harness::load::Kind;
use aether_harness::roll::Figures;
use aether_harness::{Agent, Node, Start};
use anyhow::{bail, ensure};

use crate::report::{line, step, title};

/// Rolls the node in `dir`.
pub(crate) async fn run(dir: &Path) -> anyhow::Result<()> {
    let Some(node) = Node::find(dir)? else {
        bail!("no node is up in {}; start one with: cargo xtask up", dir.display());
    };
    let owner = node.owner().await?;
    node.bring_programs()?;
    once(&node, owner).await?.leave();
    Ok(())
}

/// One roll under load, with its figures; the new agent.
pub(crate) async fn once(node: &Node, mut old: Agent) -> anyhow::Result<Agent> {
    title("A roll under load");
    let start = Start::like(&free_name(node)?, &old)?;
    let rolling = node.roll_under_load(&mut old, &start);
    let (new, figures) = step("2 clients of containerd, the plugin every 50 ms: one roll", rolling).await?;
    show(&figures);
    title("aetherctl takeover");
    let admin_socket = new.admin_socket();
    line(node.run(&["aetherctl", "--admin-socket", &admin_socket, "takeover"])?.trim_end());
    figures.record.nothing_failed()?;
    ensure!(figures.findings.is_clean(), "{}", figures.findings);
    Ok(new)
}

fn show(figures: &Figures) {
    let ms = |time: std::time::Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let record = &figures.record;
    let rows = [
        ("the new agent stood by complete after", ms(figures.rolled.built())),
        ("the old one was gone after SIGTERM within", ms(figures.rolled.ended())),
        ("longest time without an answer on the CNI socket", figures.gap.map_or("-".to_owned(), ms)),
        (
            "pods started and ended by containerd",
            format!("{} and {}", record.succeeded(Kind::Run), record.succeeded(Kind::Remove)),
        ),
        (
            "ADDs and DELs by the plugin alone",
            format!("{} and {}", record.succeeded(Kind::Add), record.succeeded(Kind::Del)),
        ),
        ("calls that failed", record.failed().len().to_string()),
        ("records lost", figures.findings.lost.len().to_string()),
        ("records of no pod", figures.findings.ghosts.len().to_string()),
    ];
    for (what, value) in rows {
        line(&format!("  {what:<52} {value:>14}"));
    }
}

/// A name whose directory no agent of this node has had.
fn free_name(node: &Node) -> anyhow::Result<String> {
    let used = node.files("/tmp")?.iter().filter(|name| name.starts_with("aether")).count();
    Ok(format!("aether-{}", used + 1))
}
