//! The watcher against real directories and the real inotify.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::match_wild_err_arm,
    reason = "a test's helpers fail as its body does"
)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aether_chain_watch::pace::Limits;
use aether_chain_watch::{Cause, Config, Lost, Mode, Observation, Reporter, Watcher};
use aether_domain::chain::State;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni"}"#;
/// Within which everything awaited here must come; it is expected within milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<Cause>, Vec<Lost>)>>);

impl Heard {
    fn causes(&self) -> Vec<Cause> {
        self.0.lock().unwrap().0.clone()
    }
    fn losses(&self) -> Vec<Lost> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Reporter for Heard {
    fn looked(&self, cause: Cause, _: &Observation) {
        self.0.lock().unwrap().0.push(cause);
    }
    fn lost(&self, why: Lost) {
        self.0.lock().unwrap().1.push(why);
    }
}

struct Node {
    root: tempfile::TempDir,
    heard: Heard,
    seen: watch::Receiver<Observation>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Node {
    /// A node whose list is chained, watched by events alone: no poll comes within the test.
    fn start() -> Self {
        let root = prepare();
        Self::watch(root, Duration::from_secs(3600))
    }

    fn watch(root: tempfile::TempDir, poll: Duration) -> Self {
        let heard = Heard::default();
        let config = Config {
            conf_dir: root.path().join("cni/net.d"),
            state_dir: root.path().join("state"),
            plugin: root.path().join("bin/aether-cni"),
            poll,
            events: Limits { gap: Duration::from_millis(1), ..Limits::default() },
        };
        let (watcher, seen) = Watcher::new(config, heard.clone(), None);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(watcher.run(stop.clone()));
        Self { root, heard, seen, stop, tasks }
    }

    fn conf(&self, name: &str) -> PathBuf {
        self.root.path().join("cni/net.d").join(name)
    }

    async fn until(&mut self, what: &str, holds: impl FnMut(&Observation) -> bool) -> Observation {
        let last = self.seen.clone();
        match tokio::time::timeout(PATIENCE, self.seen.wait_for(holds)).await {
            Ok(seen) => seen.unwrap().clone(),
            Err(_) => panic!("not seen: {what}; last: {:?}", last.borrow()),
        }
    }

    async fn state(&mut self, name: &str) -> Observation {
        self.until(name, |seen| seen.state.name() == name).await
    }

    async fn end(mut self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.tasks.join_next()).await.expect("it stops when told to");
    }
}

fn prepare() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("cni/net.d")).unwrap();
    std::fs::create_dir_all(root.path().join("state")).unwrap();
    fill(&root.path().join("cni/net.d"));
    root
}

fn fill(directory: &Path) {
    let wanted = format!(
        r#"{{"format":1,"oldestReader":1,"entry":{ENTRY},"pluginSha256":"00","installId":"rel/7","firstInstalled":1}}"#
    );
    std::fs::write(directory.join(".aether-cni-entry"), wanted).unwrap();
    std::fs::write(directory.join("10-flannel.conflist"), chained()).unwrap();
}

fn list(name: &str, plugins: &[&str]) -> String {
    format!(r#"{{"name":"{name}","cniVersion":"0.3.1","plugins":[{}]}}"#, plugins.join(","))
}

fn chained() -> String {
    list("cbr0", &[r#"{"type":"flannel"}"#, ENTRY])
}

fn stripped() -> String {
    list("cbr0", &[r#"{"type":"flannel"}"#])
}

#[tokio::test(flavor = "multi_thread")]
async fn c01_a_writer_that_never_rests_is_looked_at_at_leisure_and_a_strip_is_seen_all_the_same() {
    let mut node = Node::start();
    node.state("chained").await;
    let limits = Limits::default();
    let (stop, began) = (CancellationToken::new(), Instant::now());
    let (halt, files) = (stop.clone(), ["98-busy.conf", "99-busy.conf"].map(|name| node.conf(name)));
    for file in &files {
        std::fs::write(file, "x").unwrap();
    }
    let writer = std::thread::spawn(move || {
        let mut changes = 0_u32;
        while !halt.is_cancelled() {
            // In turn: the queue takes the same event twice for one.
            for file in files.iter().cycle().take(100) {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
                changes += 1;
            }
            // pause: the writer's own
            std::thread::sleep(Duration::from_millis(1));
        }
        changes
    });
    let used_up = || node.heard.causes().len() > usize::try_from(limits.burst).unwrap() + 3;
    while !used_up() {
        assert!(began.elapsed() < PATIENCE, "no burst: {}", node.heard.causes().len());
        // pause: of the poll
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    node.state("stripped").await;
    // Long enough for the queue to run over, were it not emptied.
    while began.elapsed() < limits.rest * 30 {
        // pause: of the poll
        tokio::time::sleep(limits.rest).await;
    }
    stop.cancel();
    let changes = writer.join().unwrap();
    let (looks, took) = (node.heard.causes().len(), began.elapsed());
    // The look at start, and one that is under way.
    let most = u128::from(limits.burst) + took.as_millis() / limits.rest.as_millis() + 2;
    assert!(looks as u128 <= most, "{looks} looks in {took:?}, {changes} changes");
    assert_eq!(node.heard.losses(), [], "{changes} changes in {took:?}");
    node.end().await;
}

#[tokio::test]
async fn c01_a_chained_list_is_seen_at_start_with_all_there_is_to_tell() {
    let mut node = Node::start();
    let seen = node.state("chained").await;
    assert_eq!(seen.file.as_deref(), Some("10-flannel.conflist"));
    assert_eq!(seen.plugins, ["flannel", "aether-cni"]);
    assert_eq!(seen.install_id, Some("rel/7".parse().unwrap()));
    assert_eq!(seen.mode, Mode::Inotify);
    assert!(seen.choice.contains("first in byte order"), "{}", seen.choice);
    assert!(seen.checked_at > 1_600_000_000);
    assert_eq!(node.heard.causes(), [Cause::Start]);
    node.end().await;
}

#[tokio::test]
async fn c01_a_strip_is_seen_by_an_event_whichever_way_it_is_written() {
    let mut node = Node::start();
    node.state("chained").await;
    let file = node.conf("10-flannel.conflist");
    for _ in 0..5 {
        std::fs::write(&file, stripped()).unwrap();
        node.state("stripped").await;
        let temporary = node.conf(".10-flannel.conflist.tmp");
        std::fs::write(&temporary, chained()).unwrap();
        std::fs::rename(&temporary, &file).unwrap();
        node.state("chained").await;
    }
    std::fs::remove_file(&file).unwrap();
    let seen = node.state("no-list").await;
    assert_eq!(seen.file, None);
    assert!(seen.choice.contains("no file of"), "{}", seen.choice);
    assert!(!node.heard.causes().contains(&Cause::Poll), "{:?}", node.heard.causes());
    assert_eq!(node.heard.losses(), []);
    node.end().await;
}

#[tokio::test]
async fn c01_an_altered_a_doubled_and_a_dropped_in_entry_are_drift() {
    let mut node = Node::start();
    node.state("chained").await;
    let altered = r#"{"name":"aether","type":"aether-cni","agentSocket":"/elsewhere"}"#;
    for plugins in [&[r#"{"type":"flannel"}"#, altered][..], &[r#"{"type":"flannel"}"#, ENTRY, ENTRY]] {
        std::fs::write(node.conf("10-flannel.conflist"), list("cbr0", plugins)).unwrap();
        node.state("drifted").await;
        std::fs::write(node.conf("10-flannel.conflist"), chained()).unwrap();
        node.state("chained").await;
    }
    std::fs::create_dir(node.conf("cbr0")).unwrap();
    std::fs::write(node.conf("cbr0/50-aether.conf"), ENTRY).unwrap();
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    node.state("drifted").await;
    node.end().await;
}

#[tokio::test]
async fn c01_a_list_that_cannot_be_judged_is_invalid_or_unknown_and_never_chained() {
    let mut node = Node::start();
    node.state("chained").await;
    let file = node.conf("10-flannel.conflist");
    let bad: [(&str, Vec<u8>); 9] = [
        ("empty", Vec::new()),
        ("half", chained().into_bytes()[..40].to_vec()),
        ("no object", b"{}".to_vec()),
        ("comment", format!("// x\n{}", chained()).into_bytes()),
        ("BOM", format!("\u{feff}{}", chained()).into_bytes()),
        ("trailing", format!("{}x", chained()).into_bytes()),
        ("trailing comma", chained().replace("]}", ",]}").into_bytes()),
        ("plugins of another shape", br#"{"name":"a","cniVersion":"0.3.1","plugins":{}}"#.to_vec()),
        ("NULs", vec![0; 64]),
    ];
    for (what, bytes) in bad {
        std::fs::write(&file, bytes).unwrap();
        let seen = node.until(what, |seen| matches!(seen.state, State::Invalid { .. })).await;
        let State::Invalid { why } = seen.state else { unreachable!() };
        assert!(!why.is_empty(), "{what}");
        assert_eq!(seen.file.as_deref(), Some("10-flannel.conflist"), "{what}");
        std::fs::write(&file, chained()).unwrap();
        node.state("chained").await;
    }
    // Larger than what is read: nobody can tell.
    std::fs::write(&file, vec![b' '; 5 * 1024 * 1024]).unwrap();
    node.state("unknown").await;
    // A dangling link: the runtime cannot read it either.
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    node.state("invalid").await;
    std::fs::remove_file(&file).unwrap();
    // A pipe that nobody writes must not be waited for.
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    node.state("unknown").await;
    std::fs::remove_file(&file).unwrap();
    // A directory of that name is no file: the runtime passes it by.
    std::fs::create_dir(&file).unwrap();
    node.state("no-list").await;
    node.end().await;
}

#[tokio::test]
async fn c04_nothing_is_ever_written() {
    let mut node = Node::start();
    node.state("chained").await;
    let file = node.conf("10-flannel.conflist");
    for (bytes, state) in [(&b""[..], "invalid"), (b"{", "invalid"), (stripped().as_bytes(), "stripped")] {
        std::fs::write(&file, bytes).unwrap();
        node.state(state).await;
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
    let mut names: Vec<_> =
        std::fs::read_dir(node.conf("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".aether-cni-entry", "10-flannel.conflist"]);
    node.end().await;
}

#[tokio::test]
async fn c05_a_file_that_sorts_earlier_becomes_the_chosen_one_within_one_check() {
    let mut node = Node::start();
    node.state("chained").await;
    std::fs::write(node.conf("05-cilium.conflist"), list("cilium", &[r#"{"type":"cilium-cni"}"#])).unwrap();
    let seen = node.state("stripped").await;
    assert_eq!(seen.file.as_deref(), Some("05-cilium.conflist"));
    std::fs::write(node.conf(".hidden.conf"), "{").unwrap();
    let seen = node.state("invalid").await;
    assert_eq!(seen.file.as_deref(), Some(".hidden.conf"), "nothing else is chosen, as the runtime does");
    std::fs::remove_file(node.conf(".hidden.conf")).unwrap();
    std::fs::rename(node.conf("05-cilium.conflist"), node.conf("05-cilium.conflist.cilium_bak")).unwrap();
    node.state("chained").await;
    node.end().await;
}

#[tokio::test]
async fn c01_the_directory_itself_is_watched_anew_when_it_is_replaced_or_comes_back() {
    let mut node = Node::start();
    node.state("chained").await;
    let directory = node.conf("");
    let aside = node.root.path().join("cni/aside");
    // Renamed away, another put in its place.
    std::fs::rename(&directory, &aside).unwrap();
    node.state("no-list").await;
    std::fs::create_dir(&directory).unwrap();
    fill(&directory);
    node.state("chained").await;
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    node.state("stripped").await;
    // Removed with all it held, and made again.
    std::fs::remove_dir_all(&directory).unwrap();
    let seen = node.state("no-list").await;
    assert!(seen.choice.contains("does not exist") || seen.choice.contains("no file of"), "{}", seen.choice);
    node.until("polling", |seen| seen.mode == Mode::Poll).await;
    std::fs::create_dir(&directory).unwrap();
    fill(&directory);
    node.until("chained by events", |seen| seen.state == State::Chained && seen.mode == Mode::Inotify).await;
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    node.state("stripped").await;
    assert!(node.heard.losses().contains(&Lost::Replaced));
    assert!(!node.heard.causes().contains(&Cause::Poll), "{:?}", node.heard.causes());
    node.end().await;
}

#[tokio::test]
async fn c01_a_replacement_further_up_is_found_by_the_next_poll() {
    let mut node = Node::watch(prepare(), Duration::from_millis(50));
    node.state("chained").await;
    let above = node.root.path().join("cni");
    std::fs::rename(&above, node.root.path().join("aside")).unwrap();
    node.state("no-list").await;
    std::fs::create_dir_all(above.join("net.d")).unwrap();
    fill(&above.join("net.d"));
    node.until("chained again", |seen| seen.state == State::Chained && seen.mode == Mode::Inotify).await;
    node.end().await;
}

#[tokio::test]
async fn c01_a_link_to_the_directory_that_is_pointed_elsewhere_is_followed() {
    let root = prepare();
    let (link, first, second) =
        (root.path().join("cni/net.d"), root.path().join("cni/first"), root.path().join("cni/second"));
    std::fs::rename(&link, &first).unwrap();
    std::os::unix::fs::symlink("first", &link).unwrap();
    std::fs::create_dir(&second).unwrap();
    fill(&second);
    std::fs::write(second.join("10-flannel.conflist"), stripped()).unwrap();
    let mut node = Node::watch(root, Duration::from_secs(3600));
    node.state("chained").await;
    let next = node.root.path().join("cni/next");
    std::os::unix::fs::symlink("second", &next).unwrap();
    std::fs::rename(&next, &link).unwrap();
    node.state("stripped").await;
    std::fs::write(second.join("10-flannel.conflist"), chained()).unwrap();
    node.state("chained").await;
    node.end().await;
}

#[tokio::test]
async fn c01_when_the_queue_runs_over_it_looks_anyway_polls_and_says_so() {
    let mut node = Node::watch(prepare(), Duration::from_secs(2));
    node.until("chained by events", |seen| seen.state == State::Chained && seen.mode == Mode::Inotify).await;
    let most: usize =
        std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // This thread runs the watcher too: nobody reads the queue while it fills. Two names in turn, for equal events in a
    // row are one.
    let (a, b) = (node.conf("a.tmp"), node.conf("b.tmp"));
    std::fs::write(&a, "").unwrap();
    for _ in 0..=most / 2 {
        std::fs::rename(&a, &b).unwrap();
        std::fs::rename(&b, &a).unwrap();
    }
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    node.until("stripped, by poll", |seen| seen.state == State::Stripped && seen.mode == Mode::Poll).await;
    assert_eq!(node.heard.losses(), [Lost::Overflow]);
    node.until("events again", |seen| seen.mode == Mode::Inotify).await;
    node.end().await;
}

#[tokio::test]
async fn c01_an_uninstall_is_seen_and_a_vanished_wanted_state_is_not_one() {
    let mut node = Node::watch(prepare(), Duration::from_millis(50));
    node.state("chained").await;
    std::fs::remove_file(node.conf(".aether-cni-entry")).unwrap();
    std::fs::write(node.conf("10-flannel.conflist"), stripped()).unwrap();
    let seen = node.state("stripped").await;
    assert_eq!(seen.install_id, Some("rel/7".parse().unwrap()), "what was last observed healthy is wanted");
    std::fs::write(node.root.path().join("state/uninstalled"), "").unwrap();
    node.state("uninstalled").await;
    node.end().await;
}

#[tokio::test]
async fn c01_without_a_wanted_state_nothing_counts_as_chained() {
    let root = prepare();
    std::fs::remove_file(root.path().join("cni/net.d/.aether-cni-entry")).unwrap();
    let mut node = Node::watch(root, Duration::from_secs(3600));
    let seen = node.until("a look", |seen| seen.checked_at > 0).await;
    assert!(matches!(seen.state, State::Unknown { .. }), "{:?}", seen.state);
    node.end().await;
}
