//! Writers that still hold the replaced file open (C02).

use std::io::{Seek as _, SeekFrom, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{ENTRY, FLANNEL, LIST, Node, chained, chained_text, digest, is};

/// Repairs while a writer holds the list open; `write` is done by the writer once the new list stands.
fn repair_under_a_writer(
    node: &Node,
    write: impl FnOnce(std::fs::File) + Send,
) -> aether_list_keeper::Outcome {
    let held = std::fs::OpenOptions::new().write(true).open(node.conf().join(LIST)).unwrap();
    std::thread::scope(|scope| {
        let repair = scope.spawn(|| node.repair(ENTRY));
        let start = Instant::now();
        while node.get(LIST) == FLANNEL {
            assert!(start.elapsed() < Duration::from_secs(30), "the list was not replaced");
            std::thread::yield_now();
        }
        write(held);
        repair.join().unwrap()
    })
}

fn overwrite(file: &mut std::fs::File, text: &str) {
    file.set_len(0).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn c02_what_a_late_writer_leaves_in_the_replaced_file_gets_our_entry() {
    let node = Node::flannel();
    let theirs = FLANNEL.replace("portmap", "bandwidth");
    let outcome = repair_under_a_writer(&node, |mut file| overwrite(&mut file, &theirs));
    is(&outcome, "done", &["another program wrote"]);
    assert_eq!(node.get(LIST), chained_text(&theirs, ENTRY));
    assert!(node.temporaries().is_empty());
}

#[test]
fn c02_a_late_writer_in_two_halves_is_waited_for() {
    let node = Node::flannel();
    let theirs = FLANNEL.replace("portmap", "bandwidth");
    let (first, second) = theirs.split_at(40);
    let outcome = repair_under_a_writer(&node, |mut file| {
        overwrite(&mut file, first);
        // pause: the writer's pause is what is tested; nothing is synchronised by it.
        std::thread::sleep(Duration::from_millis(300));
        file.write_all(second.as_bytes()).unwrap();
    });
    is(&outcome, "done", &["another program wrote"]);
    assert_eq!(node.get(LIST), chained_text(&theirs, ENTRY));
}

#[test]
fn c02_a_late_writer_that_writes_twice_is_followed_to_the_end() {
    let node = Node::flannel();
    let (one, two) = (FLANNEL.replace("portmap", "one"), FLANNEL.replace("portmap", "two"));
    let outcome = repair_under_a_writer(&node, |mut file| {
        overwrite(&mut file, &one);
        let start = Instant::now();
        while node.get(LIST) != chained_text(&one, ENTRY) {
            assert!(
                start.elapsed() < Duration::from_secs(4),
                "the first was not taken over while the file was open"
            );
            std::thread::yield_now();
        }
        overwrite(&mut file, &two);
    });
    is(&outcome, "done", &["another program wrote"]);
    assert_eq!(node.get(LIST), chained_text(&two, ENTRY));
}

#[test]
fn c02_c04_a_late_writer_that_leaves_no_list_is_said_and_ours_stands() {
    let node = Node::flannel();
    let outcome = repair_under_a_writer(&node, |mut file| overwrite(&mut file, "{\"name\":"));
    is(&outcome, "done", &["no list"]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, ENTRY));
}

#[test]
fn c02_a_late_writer_that_writes_nothing_costs_nothing_but_its_time() {
    let node = Node::flannel();
    is(&repair_under_a_writer(&node, drop), "done", &["our entry is in it"]);
    assert_eq!(node.get(LIST), chained_text(FLANNEL, ENTRY));
}

#[test]
fn c02_a_newer_file_ends_the_wait_for_a_late_writer() {
    let node = Node::flannel();
    let newer = FLANNEL.replace("portmap", "newer");
    let file = std::sync::Mutex::new(None);
    let start = Instant::now();
    let outcome = repair_under_a_writer(&node, |held| {
        node.put("temp", &newer);
        std::fs::rename(node.conf().join("temp"), node.conf().join(LIST)).unwrap();
        *file.lock().unwrap() = Some(held);
    });
    is(&outcome, "done", &[]);
    assert!(
        start.elapsed() < aether_domain::limits::LATE_WRITER,
        "it was waited for a writer of no consequence"
    );
    assert_eq!(node.get(LIST), newer);
}

/// flannel's `cp -f` in a loop of its own beside a keeper that repairs: whoever is last, the list is never torn by us,
/// and in the end holds what the writer wrote, with ours.
#[test]
fn c02_a9_a_writer_in_place_beside_the_keeper_loses_nothing() {
    let node = Node::flannel();
    let rounds = AtomicUsize::new(0);
    let final_text = FLANNEL.replace("portmap", "round-99");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100 {
                let text = FLANNEL.replace("portmap", &format!("round-{round}"));
                // In place, as `cp -f` does: truncated, then written.
                node.put(LIST, text);
                rounds.fetch_add(1, Ordering::SeqCst);
                // pause: of the writer
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let start = Instant::now();
        while node.get(LIST) != chained_text(&final_text, ENTRY) {
            assert!(start.elapsed() < Duration::from_secs(60), "{}", node.get(LIST));
            let old = node.get(LIST);
            let Ok(list) =
                aether_conflist::load::List::load(LIST, &old, aether_conflist::load::DropIns::none())
            else {
                continue;
            };
            if list.ours().next().is_none() {
                let outcome =
                    node.keeper().replace_list(LIST, &digest(old.as_bytes()), &chained(&old, ENTRY), || true);
                assert!(matches!(outcome.name(), "done" | "conflict"), "{outcome:?}");
            }
        }
    });
    assert_eq!(rounds.load(Ordering::SeqCst), 100);
}
