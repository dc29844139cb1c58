//! What libcni makes of the lists that we edit (I02, I07, I09): it takes them, it sees everybody else's entries as
//! before, and ours last and once.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers stop the test")]

use aether_conflist::edit::{EditError, put, remove};
use aether_conflist::json::Document;
use aether_conflist::load::{Kind, List};
use aether_conflist::own::{OwnEntry, TYPE};
use aether_test_libcni::case::{Case, Item, Loaded, Verdict};
use aether_test_libcni::fixtures;
use aether_test_libcni::generate::{self, Random};
use aether_test_libcni::judge::Judge;

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock","stateDir":"/var/lib/aether","addDeadlineSeconds":5,"ignoredNamespaces":["kube-system","a"],"releaseNamespace":"aether","managed":"opt-out","capabilities":{"io.kubernetes.cri.pod-annotations":true,"portMappings":true}}"#;

fn wanted() -> OwnEntry {
    OwnEntry::parse(ENTRY.as_bytes()).unwrap()
}

/// A case before and after our entry was put into its list.
struct Edited {
    before: Case,
    after: Case,
    /// How many entries of ours the list had before.
    had: usize,
}

impl Edited {
    /// Puts our entry in, where it goes in at all, and checks what needs no judge: taking it out again gives the bytes
    /// that were there (without the entries of ours, if there were any), and putting it in twice changes nothing.
    fn of(before: &Case) -> Option<Self> {
        let list = before.list()?.ok()?;
        let edited = match put(&list, &wanted()) {
            Ok(edited) => edited,
            Err(EditError::Unsound { file, reason }) => panic!("{file}: {reason}"),
            Err(_) => return None,
        };
        let mut after = before.clone();
        for (name, item) in &mut after.items {
            if list.file_name() == name.as_str() {
                *item = Item::File(edited.clone());
            }
        }
        let again: List = after.list().unwrap().unwrap();
        assert_eq!(put(&again, &wanted()).unwrap(), edited, "putting it in twice changes something");
        let had = list.ours().count();
        let removed = remove(&again).unwrap();
        let original = if had == 0 { list.bytes().to_vec() } else { remove(&list).unwrap() };
        assert_eq!(removed, original, "{} does not come back", list.file_name().display());
        Some(Self { before: before.clone(), after, had })
    }
}

/// Asks both judges about every edited list. Gives how many there were.
fn judged(cases: &[Case]) -> usize {
    let edited: Vec<Edited> = cases.iter().filter_map(Edited::of).collect();
    let before: Vec<Case> = edited.iter().map(|edited| edited.before.clone()).collect();
    let after: Vec<Case> = edited.iter().map(|edited| edited.after.clone()).collect();
    let ours = Document::parse(ENTRY.as_bytes()).unwrap();
    let ours = ours.canonical(ours.root());
    for judge in Judge::both().unwrap() {
        let verdicts = judge.ask(&before).unwrap().into_iter().zip(judge.ask(&after).unwrap());
        for (edited, (before, after)) in edited.iter().zip(verdicts) {
            let context = format!("{}: {before:?} became {after:?}", judge.version());
            let (before, after) = (loaded(before), loaded(after));
            assert_eq!((before.name, before.cni_version), (after.name, after.cni_version), "{context}");
            let foreign = |plugins: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
                plugins.iter().filter(|(name, _)| name != TYPE).cloned().collect()
            };
            assert_eq!(foreign(&before.plugins), foreign(&after.plugins), "{context}");
            let mine: Vec<_> = after.plugins.iter().filter(|(name, _)| name == TYPE).collect();
            let [(_, bytes)] = mine.as_slice() else { panic!("{context}") };
            let seen = Document::parse(bytes).unwrap();
            assert_eq!(seen.canonical(seen.root()), ours, "{context}");
            let has_drop_ins = edited.after.items.iter().any(|(name, _)| name.contains('/'));
            if edited.had == 0 && !has_drop_ins {
                assert_eq!(after.plugins.last().map(|(name, _)| name.as_str()), Some(TYPE), "{context}");
            }
        }
    }
    edited.len()
}

fn loaded(verdict: Verdict) -> Loaded {
    match verdict.outcome {
        Ok(loaded) => loaded,
        Err(error) => panic!("the judge refuses {:?}: {error}", verdict.file),
    }
}

#[test]
fn i02_i07_every_owners_list_is_edited_loaded_and_restored() {
    let all = fixtures::all().unwrap();
    let valid: Vec<_> = all.iter().filter(|fixture| fixture.verdict == "valid").collect();
    let cases: Vec<Case> = valid.iter().map(|fixture| fixture.case().unwrap()).collect();
    assert_eq!(judged(&cases), valid.len(), "each of them takes our entry");
    assert!(valid.len() > 40, "only {} valid lists", valid.len());
}

#[test]
fn i02_the_difference_is_one_inserted_object() {
    for fixture in fixtures::all().unwrap().iter().filter(|fixture| fixture.verdict == "valid") {
        let list = fixture.case().unwrap().list().unwrap().unwrap();
        let edited = put(&list, &wanted()).unwrap();
        let same = list.bytes().iter().zip(&edited).take_while(|(a, b)| a == b).count();
        let grown = edited.len() - list.bytes().len();
        let tail = list.bytes().len() - same;
        assert!(edited.ends_with(&list.bytes()[same..]), "{}: bytes behind the object changed", fixture.file);
        let inserted = edited.get(same..same + grown).unwrap();
        assert_eq!(edited.len() - same - grown, tail, "{}", fixture.file);
        let text = String::from_utf8_lossy(inserted);
        assert!(text.contains("aether-cni"), "{}: {text}", fixture.file);
        let carriage = |bytes: &[u8]| bytes.windows(2).filter(|pair| *pair == b"\r\n").count();
        let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').count() - 1;
        let owner_uses_crlf = carriage(list.bytes()) > 0;
        assert!(!owner_uses_crlf || carriage(&edited) == lines(&edited), "{}: mixed line ends", fixture.file);
    }
}

#[test]
fn i04_i14_the_other_residents_change_nothing() {
    let all = fixtures::all().unwrap();
    let residents = all.iter().find(|fixture| fixture.file.starts_with("residents/")).unwrap();
    let folder = residents.folder().unwrap();
    assert!(folder.items.len() > 20, "{} residents", folder.items.len());
    for judge in Judge::both().unwrap() {
        let on_disk = judge.look(&fixtures::dir().join("residents")).unwrap();
        assert_eq!(folder.ours(judge.version()).differs_from(&on_disk), None, "{}", judge.version());
    }
    assert_eq!(judged(&[folder]), 1);
}

#[test]
fn i06_i07_what_is_no_list_to_chain_to_is_refused() {
    for fixture in fixtures::all().unwrap() {
        let Some(Ok(list)) = fixture.case().unwrap().list() else { continue };
        let answer = put(&list, &wanted());
        match fixture.verdict.as_str() {
            "single" => {
                assert_eq!(list.kind(), Kind::Single);
                assert!(matches!(answer, Err(EditError::Single { .. })), "{}", fixture.file);
            }
            "loopback" => assert!(matches!(answer, Err(EditError::LoopbackOnly { .. })), "{}", fixture.file),
            "only ours" => assert!(matches!(answer, Err(EditError::OnlyOurs { .. })), "{}", fixture.file),
            _ => assert!(answer.is_ok(), "{}", fixture.file),
        }
    }
}

#[test]
fn i02_i07_i09_generated_lists_are_edited_loaded_and_restored() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = usize::try_from(number("AETHER_ROUNDS").unwrap_or(3000)).unwrap();
    let mut random = Random::new(number("AETHER_SEED").unwrap_or(1) ^ 0x3C3C);
    let mut cases: Vec<Case> = (0..rounds / 2).map(|_| generate::case(&mut random)).collect();
    let all: Vec<_> =
        fixtures::all().unwrap().into_iter().filter(|fixture| fixture.verdict == "valid").collect();
    cases.extend((0..rounds / 2).map(|_| {
        let fixture = random.pick(&all).clone();
        let bytes = generate::respaced(&mut random, &fixture.bytes().unwrap());
        let bytes = if random.once_in(4) { generate::mutated(&mut random, &bytes) } else { bytes };
        Case::of(fixture.file_name(), bytes)
    }));
    let judged = judged(&cases);
    assert!(judged > rounds / 4, "only {judged} of {rounds} lists took our entry");
}
