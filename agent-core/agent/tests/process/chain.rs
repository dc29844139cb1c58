//! The chain's state as the agent tells it: C01, C04, C05.

use aether_api::admin::ChainResponse;

use crate::calls::{Admin, admin};
use crate::support::{Node, PATIENCE};

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni"}"#;
/// The states are looked at as they are: nothing is repaired.
const LEFT_ALONE: [&str; 1] = ["--cni-conflist-reassert=false"];
const FILE: &str = "10-flannel.conflist";

fn chained() -> String {
    format!(r#"{{"name":"cbr0","cniVersion":"0.3.1","plugins":[{{"type":"flannel"}},{ENTRY}]}}"#)
}

fn install(node: &Node) {
    let wanted = format!(
        r#"{{"format":1,"oldestReader":1,"entry":{ENTRY},"pluginSha256":"00","installId":"rel/7","firstInstalled":1}}"#
    );
    std::fs::write(node.conf(".aether-cni-entry"), wanted).unwrap();
    std::fs::write(node.conf(FILE), chained()).unwrap();
}

async fn state(admin: &mut Admin, what: &str, holds: impl Fn(&ChainResponse) -> bool) -> ChainResponse {
    let began = std::time::Instant::now();
    loop {
        let seen = admin.chain().await;
        if holds(&seen) {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "never {what}; last: {seen:?}");
        // pause: between two looks of a poll with a deadline
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c01_c04_every_bad_list_has_its_state_with_a_reason_and_is_left_as_it_is() {
    let node = Node::new();
    install(&node);
    let agent = node.start_with("a", &LEFT_ALONE);
    let mut asked = admin(&agent).await;
    let seen = state(&mut asked, "chained", |seen| seen.state == "chained").await;
    assert_eq!(
        (seen.file.as_str(), seen.install_id.as_str(), seen.watch_mode.as_str()),
        (FILE, "rel/7", "inotify")
    );
    assert_eq!(seen.plugins, ["flannel", "aether-cni"]);
    assert_eq!(seen.detail, "");
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let lists: [(&str, Vec<u8>, &str); 16] = [
        ("empty", Vec::new(), "invalid"),
        ("half-written", chained().into_bytes()[..30].to_vec(), "invalid"),
        ("an empty object", b"{}".to_vec(), "invalid"),
        ("comments", chained().replace('{', "{/* x */").into_bytes(), "invalid"),
        ("a BOM", format!("\u{feff}{}", chained()).into_bytes(), "invalid"),
        ("trailing data", format!("{} {{}}", chained()).into_bytes(), "invalid"),
        ("a trailing comma", chained().replace("]}", ",]}").into_bytes(), "invalid"),
        (
            "two plugins keys, ours in the last",
            format!(r#"{{"name":"a","cniVersion":"0.3.1","plugins":[{{"type":"x"}}],"plugins":[{{"type":"y"}},{ENTRY}]}}"#).into_bytes(),
            "chained",
        ),
        (
            "two plugins keys, ours in the first",
            format!(r#"{{"name":"a","cniVersion":"0.3.1","plugins":[{{"type":"y"}},{ENTRY}],"plugins":[{{"type":"x"}}]}}"#).into_bytes(),
            "stripped",
        ),
        (
            "bytes that are no UTF-8",
            [br#"{"x":"#.as_slice(), b"\"\xff\xfe\",", &chained().as_bytes()[1..]].concat(),
            "chained",
        ),
        ("200 levels", chained().replacen('{', &format!(r#"{{"x":{deep},"#), 1).into_bytes(), "chained"),
        ("CRLF", chained().replace(',', ",\r\n").into_bytes(), "chained"),
        ("tabs", chained().replace(',', ",\t").into_bytes(), "chained"),
        ("a final newline", (chained() + "\n").into_bytes(), "chained"),
        ("ours alone gone", chained().replace(&format!(",{ENTRY}"), "").into_bytes(), "stripped"),
        ("ours twice", chained().replace(ENTRY, &format!("{ENTRY},{ENTRY}")).into_bytes(), "drifted"),
    ];
    for (what, bytes, expected) in lists {
        // Through another state, so that the one that is awaited is this list's.
        std::fs::remove_file(node.conf(FILE)).unwrap();
        state(&mut asked, "no-list", |seen| seen.state == "no-list").await;
        std::fs::write(node.conf("temporary"), &bytes).unwrap();
        std::fs::rename(node.conf("temporary"), node.conf(FILE)).unwrap();
        let seen = state(&mut asked, what, |seen| seen.state != "no-list").await;
        assert_eq!(seen.state, expected, "{what}: {seen:?}");
        assert_eq!(seen.detail.is_empty(), expected == "chained", "{what}: {seen:?}");
        assert_eq!(seen.file, FILE, "{what}");
        assert_eq!(std::fs::read(node.conf(FILE)).unwrap(), bytes, "{what}: it is never repaired");
    }
    std::fs::remove_file(node.conf(FILE)).unwrap();
    std::os::unix::fs::symlink("nowhere", node.conf(FILE)).unwrap();
    state(&mut asked, "a dangling link", |seen| seen.state == "invalid" && seen.detail.contains("nowhere"))
        .await;
    std::fs::remove_file(node.conf(FILE)).unwrap();
    std::fs::create_dir(node.conf(FILE)).unwrap();
    state(&mut asked, "a directory of that name", |seen| seen.state == "no-list").await;
    assert!(node.conf(FILE).is_dir());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c05_a_file_that_sorts_earlier_is_the_one_that_is_told_of() {
    let node = Node::new();
    install(&node);
    let agent = node.start_with("a", &LEFT_ALONE);
    let mut asked = admin(&agent).await;
    state(&mut asked, "chained", |seen| seen.state == "chained").await;
    std::fs::write(
        node.conf("05-cilium.conflist"),
        r#"{"name":"cilium","cniVersion":"0.3.1","plugins":[{"type":"cilium-cni"}]}"#,
    )
    .unwrap();
    let seen = state(&mut asked, "stripped", |seen| seen.state == "stripped").await;
    assert_eq!(
        (seen.file.as_str(), &seen.plugins[..]),
        ("05-cilium.conflist", &["cilium-cni".to_owned()][..])
    );
    assert!(seen.choice.contains("first in byte order"), "{}", seen.choice);
    std::fs::remove_file(node.conf("05-cilium.conflist")).unwrap();
    state(&mut asked, "chained", |seen| seen.state == "chained").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c01_without_inotify_it_polls_says_so_and_still_sees_every_change() {
    let node = Node::new();
    install(&node);
    let agent = node.start_traced(
        "a",
        &["-e", "trace=inotify_init1", "-e", "inject=inotify_init1:error=EMFILE"],
        &LEFT_ALONE,
    );
    let mut asked = admin(&agent).await;
    let seen = state(&mut asked, "chained", |seen| seen.state == "chained").await;
    assert_eq!(seen.watch_mode, "poll");
    let line = agent.logged("polling it instead");
    assert!(line.contains("max_user_instances") && line.contains("Too many open files"), "{line}");
    let text = crate::metrics::scrape(&agent.admin_socket());
    assert!(text.contains("aether_chain_watch_mode{mode=\"poll\"} 1"), "{text}");
    assert!(text.contains("aether_chain_watch_lost_total{reason=\"unavailable\"}"), "{text}");
    std::fs::remove_file(node.conf(FILE)).unwrap();
    state(&mut asked, "no-list", |seen| seen.state == "no-list").await;
}
