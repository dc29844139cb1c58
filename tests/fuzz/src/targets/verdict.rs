//! The list editor beside libcni: what each version says of the list, before and after our entry is put in.

use std::cell::RefCell;

use aether_conflist::edit::put;
use aether_conflist::json::Document;
use aether_conflist::own::TYPE;
use aether_test_libcni::case::{Case, Verdict};
use aether_test_libcni::judge::{Conversation, Judge};

use super::list::{ENTRY, LIST, wanted};

thread_local! {
    /// Both judges, running: a process for each input would cost a hundred times as much.
    static JUDGES: RefCell<Option<[Conversation; 2]>> = const { RefCell::new(None) };
}

pub(crate) fn run(bytes: &[u8]) {
    JUDGES.with_borrow_mut(|judges| {
        for judge in judges.get_or_insert_with(start) {
            judged(judge, bytes);
        }
    });
}

fn start() -> [Conversation; 2] {
    Judge::both().and_then(|[old, new]| Ok([old.converse()?, new.converse()?])).expect("both judges run")
}

fn judged(judge: &mut Conversation, bytes: &[u8]) {
    let case = Case::of(LIST, bytes);
    let before = agreed(judge, &case);
    // With its drop-ins: a name too long for a directory is refused by libcni 1.3 alone.
    let Some(Ok(list)) = case.list() else { return };
    let Ok(edited) = put(&list, &wanted()) else { return };
    let after = agreed(judge, &Case::of(LIST, edited));
    let (Ok(before), Ok(after)) = (before.outcome, after.outcome) else {
        panic!("{} refuses what both take", judge.version());
    };
    assert_eq!((before.name, before.cni_version), (after.name, after.cni_version));
    let foreign = |plugins: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
        plugins.iter().filter(|(name, _)| name != TYPE).cloned().collect()
    };
    assert_eq!(foreign(&before.plugins), foreign(&after.plugins), "another's entry changed");
    let mine: Vec<_> = after.plugins.iter().filter(|(name, _)| name == TYPE).collect();
    let [(_, mine)] = mine.as_slice() else { panic!("{} entries of ours", mine.len()) };
    let canonical = |bytes: &[u8]| Document::parse(bytes).map(|document| document.canonical(document.root()));
    assert_eq!(canonical(mine), canonical(ENTRY.as_bytes()), "our entry is not what was put in");
}

/// The judge's verdict, which is ours too.
fn agreed(judge: &mut Conversation, case: &Case) -> Verdict {
    let verdict = judge.ask(case).expect("the judge answers");
    if let Some(difference) = case.ours(judge.version()).differs_from(&verdict) {
        panic!("{}: {difference}", judge.version());
    }
    verdict
}
