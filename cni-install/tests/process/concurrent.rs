//! Others at work at the same time: readers, and writers of the same list.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{Child, FLANNEL, LIST, Node, ours, until};

/// Reads the list over and over in a thread of its own, until `work` is done; returns how often. `judge` says what is
/// wrong with what was read.
fn while_read(node: &Node, judge: impl Fn(&[u8]) -> Result<(), String> + Sync, work: impl FnOnce()) -> usize {
    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let bytes = std::fs::read(node.list()).expect("the list is always there");
                judge(&bytes).unwrap_or_else(|wrong| panic!("{wrong}: {}", String::from_utf8_lossy(&bytes)));
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Also when `work` panics: the scope waits for the reader.
        let guard = Done(&done);
        work();
        drop(guard);
        reader.join().unwrap();
    });
    reads.into_inner()
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// C1: a runtime that reads at any moment.
#[test]
fn i03_c1_a_reader_never_sees_a_partial_list_in_200_installs_and_uninstalls() {
    let node = Node::flannel();
    node.install().ends(0);
    let chained = node.get(LIST);
    node.uninstall().ends(0);
    let judge = |bytes: &[u8]| {
        let whole = bytes == chained || bytes == FLANNEL.as_bytes();
        if whole { Ok(()) } else { Err("neither the old list nor the new one".to_owned()) }
    };
    let reads = while_read(&node, judge, || {
        for _ in 0..200 {
            node.run(&["--no-wait", "--force"]).ends(0);
            node.uninstall().ends(0);
        }
    });
    assert!(reads > 400, "only {reads} reads in 400 runs");
}

/// I1: the entry stays while a release follows another.
#[test]
fn i09_i1_at_no_moment_of_an_upgrade_is_the_entry_away() {
    let node = Node::flannel();
    node.install().ends(0);
    let judge = |bytes: &[u8]| match ours(bytes).len() {
        1 => Ok(()),
        count => Err(format!("{count} entries of ours")),
    };
    let reads = while_read(&node, judge, || {
        for release in 1..40 {
            node.release(&release.to_string());
            let (id, deadline) = (format!("mesh/{release}"), (release % 30 + 1).to_string());
            node.run(&["--no-wait", "--install-id", &id, "--add-deadline-seconds", &deadline]).ends(0);
        }
    });
    assert!(reads > 40, "only {reads} reads in 40 upgrades");
}

#[test]
fn i01_i03_installers_at_the_same_time_take_turns() {
    let node = Node::flannel();
    let mut children: Vec<Child> =
        (0..8).map(|_| Child(node.command(&["--no-wait"]).spawn().unwrap())).collect();
    for child in &mut children {
        assert!(child.0.wait().unwrap().success());
    }
    assert_eq!(node.ours(LIST).len(), 1);
    assert_eq!(node.temporaries().len(), 0);
}

/// A list of the same network with another mtu, which a vendor writes while it is edited.
fn vendors() -> String {
    FLANNEL.replace("\"hairpinMode\": true", "\"hairpinMode\": false")
}

/// A system call, with its numbers on x86-64 and arm64.
struct Call {
    names: &'static str,
    numbers: [&'static str; 5],
}

const RENAME: Call =
    Call { names: "?rename,?renameat,?renameat2", numbers: ["82 ", "264 ", "316 ", "38 ", "276 "] };
const FSYNC: Call = Call { names: "fsync", numbers: ["74 ", "82 ", "", "", ""] };

/// Runs the installer with a system call delayed, so that `meanwhile` happens when the new list is staged and the call
/// is entered. Returns what it said.
fn delayed(node: &Node, call: &Call, meanwhile: impl FnOnce()) -> String {
    let mut child = Child(
        std::process::Command::new("strace")
            .env_clear()
            .args(["-f", "-qq", "-o"])
            .arg(node.root().join("trace"))
            .args([format!("-etrace={}", call.names), format!("-einject={}:delay_enter=1500000", call.names)])
            .arg(crate::support::PROGRAM)
            .args(node.args())
            .arg("--no-wait")
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("this test needs strace: apt-get install strace"),
    );
    let strace = child.0.id();
    let staged = || {
        let temp = node.temporaries().into_iter().find(|path| path.starts_with(node.conf()));
        temp.and_then(|path| std::fs::read(path).ok()).is_some_and(|bytes| {
            String::from_utf8_lossy(&bytes).contains("flannel") && bytes.ends_with(b"}\n")
        })
    };
    let entered = || {
        let children =
            std::fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap_or_default();
        let call_now =
            std::fs::read_to_string(format!("/proc/{}/syscall", children.trim())).unwrap_or_default();
        call.numbers.iter().any(|number| !number.is_empty() && call_now.starts_with(number))
    };
    until("the new list is staged, and the call entered", || staged() && entered());
    meanwhile();
    assert!(child.0.wait().unwrap().success());
    std::io::read_to_string(child.0.stderr.take().unwrap()).unwrap()
}

#[track_caller]
fn the_vendors_list_has_our_entry(node: &Node, said: &str) {
    assert_eq!(node.ours(LIST).len(), 1, "{said}");
    let text = String::from_utf8(node.get(LIST)).unwrap();
    assert!(text.contains("\"hairpinMode\": false"), "{said}\n{text}");
    assert_eq!(node.temporaries().len(), 0);
    node.uninstall().ends(0);
    assert_eq!(node.get(LIST), vendors().as_bytes());
}

/// A9: `cp -f` truncates the same inode and writes in place; what it writes after our last look is not lost.
#[test]
fn i03_a9_a_writer_in_place_just_before_the_rename_keeps_what_it_wrote() {
    let node = Node::flannel();
    let said = delayed(&node, &RENAME, || std::fs::write(node.list(), vendors()).unwrap());
    assert!(said.contains("another program wrote into"), "{said}");
    the_vendors_list_has_our_entry(&node, &said);
}

/// A9: still half-written when our rename is done; it is waited for.
#[test]
fn i03_a9_a_writer_in_place_that_is_slow_is_waited_for() {
    let node = Node::flannel();
    let (first, rest) = (vendors()[..50].to_owned(), vendors()[50..].to_owned());
    let mut writer = None;
    let said = delayed(&node, &RENAME, || {
        use std::io::Write as _;
        let mut file = std::fs::File::create(node.list()).unwrap();
        file.write_all(first.as_bytes()).unwrap();
        let list = node.list();
        // Ends on its own: it writes the rest once our list stands under the name.
        writer = Some(std::thread::spawn(move || {
            until("our list stands", || std::fs::read(&list).is_ok_and(|bytes| bytes.len() > 100));
            file.write_all(rest.as_bytes()).unwrap();
        }));
    });
    writer.unwrap().join().unwrap();
    the_vendors_list_has_our_entry(&node, &said);
}

#[test]
fn i03_a1_a2_a_list_that_is_replaced_or_rewritten_while_ours_is_staged_is_looked_at_again() {
    let node = Node::flannel();
    let said = delayed(&node, &FSYNC, || std::fs::write(node.list(), vendors()).unwrap());
    the_vendors_list_has_our_entry(&node, &said);
    let node = Node::flannel();
    let said = delayed(&node, &FSYNC, || {
        let temp = node.conf().join("vendor.tmp");
        std::fs::write(&temp, vendors()).unwrap();
        std::fs::rename(temp, node.list()).unwrap();
    });
    the_vendors_list_has_our_entry(&node, &said);
}
