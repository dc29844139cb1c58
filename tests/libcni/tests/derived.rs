//! What libcni makes of the lists that we derive (I06, I07): it loads the derived one before the configuration that it is
//! derived from, and sees the same network, the same plugin, and our entry behind it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers stop the test")]

use std::collections::BTreeSet;

use aether_conflist::derived::{self, DeriveError, derive};
use aether_conflist::json::Document;
use aether_conflist::load::{DropIns, Kind, List};
use aether_conflist::own::{OwnEntry, TYPE};
use aether_test_libcni::case::{Case, Item, Loaded, Verdict};
use aether_test_libcni::fixtures;
use aether_test_libcni::generate::{self, Random};
use aether_test_libcni::judge::Judge;

const ENTRY: &str = r#"{"name":"aether","type":"aether-cni","agentSocket":"/run/aether/cni.sock","capabilities":{"portMappings":true}}"#;
/// An entry that somebody else puts into the derived list.
const FOREIGN: &str = r#"{"type":"bandwidth","capabilities":{"bandwidth":true}}"#;

fn wanted() -> OwnEntry {
    OwnEntry::parse(ENTRY.as_bytes()).unwrap()
}

/// A case with a single configuration first, and the same with its derived list.
struct Derived {
    before: Case,
    after: Case,
    name: String,
    /// Whether a foreign entry stands in the derived list.
    kept: bool,
}

impl Derived {
    /// Derives, where that is possible, and checks what needs no judge: it does not depend on how often it is done, and
    /// finds back from a list that somebody altered.
    fn of(before: &Case, foreign: bool) -> Option<Self> {
        let source = before.list()?.ok()?;
        let bytes = match derive(&source, None, &wanted()) {
            Ok(bytes) => bytes,
            Err(DeriveError::Unsound { file, reason }) => panic!("{file}: {reason}"),
            Err(_) => return None,
        };
        let name = derived::name_for(source.file_name()).unwrap().into_string().unwrap();
        let load = |bytes: &[u8]| List::load(&name, bytes, DropIns::none()).unwrap();
        assert_eq!(derive(&source, Some(&load(&bytes)), &wanted()).unwrap(), bytes, "derived twice");
        assert!(derived::is_current(&load(&bytes), &source), "{name}");
        let bytes = if foreign { beside(&load(&bytes)) } else { bytes };
        let again = derive(&source, Some(&load(&bytes)), &wanted()).unwrap();
        assert_eq!(again, bytes, "{name}: an entry of somebody else does not stay as it is");
        let after = before.clone().with(&name, bytes);
        Some(Self { before: before.clone(), after, name, kept: foreign })
    }
}

/// The list with the foreign entry before ours.
fn beside(list: &List) -> Vec<u8> {
    let ours = list.text(list.ours().next().unwrap());
    let at = list.bytes().windows(ours.len()).rposition(|window| window == ours).unwrap();
    let (before, after) = list.bytes().split_at(at);
    [before, FOREIGN.as_bytes(), b", ", after].concat()
}

/// Asks both judges about every derived list. Gives how many there were.
fn judged(cases: &[Derived]) -> usize {
    let before: Vec<Case> = cases.iter().map(|case| case.before.clone()).collect();
    let after: Vec<Case> = cases.iter().map(|case| case.after.clone()).collect();
    for judge in Judge::both().unwrap() {
        let verdicts = judge.ask(&before).unwrap().into_iter().zip(judge.ask(&after).unwrap());
        for (case, (before, after)) in cases.iter().zip(verdicts) {
            let context = format!("{}: {before:?} became {after:?}", judge.version());
            assert_eq!(after.file.as_deref(), Some(case.name.as_str()), "{context}");
            let (before, after) = (loaded(before), loaded(after));
            assert_eq!((&before.name, &before.cni_version), (&after.name, &after.cni_version), "{context}");
            let seen: Vec<_> =
                after.plugins.iter().map(|(plugin, text)| (plugin.as_str(), meaning(text))).collect();
            let mut expected: Vec<_> =
                before.plugins.iter().map(|(plugin, text)| (plugin.as_str(), meaning(text))).collect();
            if case.kept {
                expected.push(("bandwidth", meaning(FOREIGN.as_bytes())));
            }
            expected.push((TYPE, meaning(ENTRY.as_bytes())));
            assert_eq!(seen, expected, "{context}");
        }
    }
    cases.len()
}

fn meaning(text: &[u8]) -> Vec<u8> {
    let document = Document::parse(text).unwrap();
    document.canonical(document.root())
}

fn loaded(verdict: Verdict) -> Loaded {
    match verdict.outcome {
        Ok(loaded) => loaded,
        Err(error) => panic!("the judge refuses {:?}: {error}", verdict.file),
    }
}

/// The fixtures that hold a single configuration which a list can be derived from.
fn singles() -> Vec<Case> {
    let all = fixtures::all().unwrap();
    let singles = all.iter().filter(|fixture| fixture.verdict == "single");
    singles.map(|fixture| fixture.case().unwrap()).collect()
}

#[test]
fn i06_i07_a_derived_list_is_loaded_before_its_source_and_means_the_same() {
    let cases: Vec<Derived> = singles()
        .iter()
        .flat_map(|case| [false, true].into_iter().filter_map(|foreign| Derived::of(case, foreign)))
        .collect();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name.clone()).collect();
    assert!(names.len() >= 3, "only {names:?} of the fixtures are derived from");
    judged(&cases);
}

#[test]
fn i06_what_no_list_is_derived_from_says_why() {
    for fixture in fixtures::all().unwrap() {
        let Some(Ok(source)) = fixture.case().unwrap().list() else { continue };
        match (source.kind(), derive(&source, None, &wanted())) {
            (Kind::List, answer) => {
                assert!(matches!(answer, Err(DeriveError::NotSingle { .. })), "{}", fixture.file);
            }
            (Kind::Single, Ok(_)) => assert_eq!(fixture.verdict, "single", "{}", fixture.file),
            (Kind::Single, Err(error)) => {
                let text = error.to_string();
                assert!(text.contains(fixture.file_name()) && text.len() > 40, "{}: {text}", fixture.file);
            }
        }
    }
}

#[test]
fn i06_drop_ins_beside_the_source_do_not_come_in_by_the_derived_list() {
    let source = r#"{"cniVersion":"1.0.0","name":"net","type":"bridge"}"#;
    let case = Case::of("10-bridge.conf", source)
        .with_item("net", Item::Dir)
        .with("net/10-extra.conf", r#"{"type":"extra"}"#);
    assert_eq!(judged(&[Derived::of(&case, false).unwrap()]), 1);
}

#[test]
fn i06_i07_generated_configurations_are_derived_from_and_mean_the_same() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = usize::try_from(number("AETHER_ROUNDS").unwrap_or(3000)).unwrap();
    let mut random = Random::new(number("AETHER_SEED").unwrap_or(1) ^ 0x6D6D);
    let known = singles();
    let mut cases = Vec::new();
    for _ in 0..rounds {
        let name = *random.pick(&["10-bridge.conf", "05-cilium.conf", "99-x y.conf", "1.json", "z.conf"]);
        let bytes = match random.below(3) {
            0 => generate::file(&mut random, true),
            other => {
                let known = random.pick(&known).clone();
                let Some((_, Item::File(bytes))) = known.items.first() else { continue };
                let bytes = generate::respaced(&mut random, bytes);
                if other == 1 { bytes } else { generate::mutated(&mut random, &bytes) }
            }
        };
        let foreign = random.once_in(3);
        cases.extend(Derived::of(&Case::of(name, bytes), foreign));
    }
    let judged = judged(&cases);
    assert!(judged > rounds / 10, "only {judged} of {rounds} configurations were derived from");
}
