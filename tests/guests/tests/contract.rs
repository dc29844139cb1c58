//! The contract over time (M10): what is released stays as it is, and goes on working.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aether_domain::text::sha256;
use aether_module_host::action::{Action, TaintEffect};
use aether_module_host::ports::{Condition, NodeView, Taint, UpstreamsSummary};
use aether_module_host::verdict::{By, Decision, Retry, Verdict};
use aether_test_guests::{Bench, pod};

#[path = "contract/wits.rs"]
mod wits;

use wits::{Wits, breach, current, undocumented};

fn released() -> Vec<PathBuf> {
    let folder = wits::folder().join("released");
    let versions: Vec<PathBuf> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!versions.is_empty(), "{} holds no version", folder.display());
    versions
}

fn module(name: &str) -> Vec<u8> {
    let path = wits::folder().join("released/0.1.0/modules").join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn m10_every_item_of_the_contract_says_what_it_is() {
    let missing = undocumented(&current());
    assert!(missing.is_empty(), "without a comment: {missing:#?}");
}

#[test]
fn m10_no_change_of_the_contract_breaks_a_released_version() {
    for version in released() {
        let old = Wits::read(&version);
        let checked = old.worlds();
        assert!(checked.len() >= 4, "{checked:?}");
        for (package, world) in checked {
            let broken = breach(&old, &current(), &package, &world);
            assert_eq!(broken, None, "{}: world {package}/{world}", version.display());
        }
    }
}

#[test]
fn m10_the_check_refuses_what_breaks_and_passes_what_does_not() {
    let old = Wits::read(&wits::folder().join("released/0.1.0"));
    let breaks = [
        ("a record gains a field", "policy", "retry: bool,", "retry: bool, extra: string,"),
        ("a field changes its type", "policy", "host-port: u16,", "host-port: u32,"),
        ("a variant gains a case", "policy", "    admit,\n", "    admit,\n    later,\n"),
        ("an export gains a function", "policy", "  evaluate: func", "  flush: func();\n  evaluate: func"),
        ("an import loses a function", "base", "  wall: func() -> u64;\n", ""),
        ("an enum gains a case", "node", "    no-execute,\n", "    no-execute,\n    other,\n"),
        (
            "an import's function takes more",
            "base",
            "add: func(name: string,",
            "add: func(name: string, x: u8,",
        ),
    ];
    let passes = [
        (
            "an import gains a function",
            "base",
            "  wall: func() -> u64;\n",
            "  wall: func() -> u64;\n  zone: func() -> string;\n",
        ),
        (
            "a new interface is offered",
            "policy",
            "  export pods;",
            "  import more: interface { f: func(); }\n  export pods;",
        ),
        ("a comment changes", "policy", "/// A policy.", "/// Another word for it."),
    ];
    let broken = |(what, package, from, to): (&str, &str, &str, &str)| {
        let new = old.edited(package, from, to);
        let mut worlds = old.worlds().into_iter();
        let broken = worlds.find_map(|(package, world)| breach(&old, &new, &package, &world));
        println!("{what}: {broken:?}");
        broken
    };
    for edit in breaks {
        assert!(broken(edit).is_some(), "{}: passes", edit.0);
    }
    for edit in passes {
        assert_eq!(broken(edit), None, "{}", edit.0);
    }
}

#[test]
fn m10_what_is_released_is_as_it_was_and_all_of_it_is_listed() {
    for version in released() {
        let sums = std::fs::read_to_string(version.join("SHA256SUMS")).unwrap();
        let mut listed = BTreeSet::new();
        for line in sums.lines() {
            let (sum, file) = line.split_once("  ").unwrap();
            let bytes = std::fs::read(version.join(file)).unwrap();
            assert_eq!(
                sha256(&bytes),
                sum,
                "{file} of {} was changed: a released version stays as it is, and a change goes to wit/ itself",
                version.display()
            );
            listed.insert(version.join(file));
        }
        let there: BTreeSet<PathBuf> = wits::files(&version).into_iter().collect();
        let there = there.into_iter().filter(|path| !path.ends_with("SHA256SUMS")).collect();
        assert_eq!(listed, there, "SHA256SUMS lists every file");
    }
}

#[test]
fn m10_a_policy_that_was_built_for_a_release_loads_and_gives_every_verdict() {
    let bench = Bench::patient();
    let manifest = "world = \"pod-policy\"\ngrant = { change = [\"label\"] }";
    bench.load("policy", manifest, &module("pod-policy")).unwrap();
    bench.host.take_over(1);
    for (name, verdict) in [
        ("web", "admit"),
        ("abstain", "abstain"),
        ("label", "admit-with"),
        ("ignore", "ignore"),
        ("later", "deny"),
    ] {
        let evaluated = bench.host.evaluate(&pod(name));
        assert_eq!(
            (evaluated.votes[0].by, evaluated.votes[0].verdict.name()),
            (By::Module, verdict),
            "{name}"
        );
    }
    let evaluated = bench.host.evaluate(&pod("fault"));
    let Verdict::Deny(denial) = &evaluated.votes[0].verdict else { panic!("{evaluated:?}") };
    assert!(denial.message.contains("it cannot tell"), "{denial:?}");
    assert!(matches!(evaluated.decision, Decision::Deny { .. }), "{evaluated:?}");
}

/// In the place of the built-in ones, as an operator's old modules would stand.
#[test]
fn m10_behaviours_that_were_built_for_a_release_load_and_act() {
    const LIST: &str = "{\n  \"name\": \"n\",\n  \"plugins\": [\n    {\"type\": \"flannel\"}\n  ]\n}\n";
    const WANTED: &str = r#"{"name":"aether","type":"aether-cni"}"#;
    let bench = Bench::new();
    let manifest = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(name).join("module.toml");
        std::fs::read_to_string(path).unwrap()
    };
    for name in ["conflist-reassert", "taint-gate", "upstream-flush"] {
        bench.load(name, &manifest(name), &module(name)).unwrap();
    }
    bench.node.put_list("10-flannel.conflist", LIST, "stripped", WANTED);
    let key = "aether.io/agent-not-ready".to_owned();
    let condition = |name: &str| Condition { name: name.to_owned(), state: Some(true), held_for: 60_000 };
    bench.node.state().node = NodeView {
        taints: vec![Taint { key: key.clone(), value: None, effect: TaintEffect::NoSchedule }],
        owned_for: Some(60_000),
        conditions: vec![condition("cni-serving"), condition("chained")],
    };
    bench.node.state().upstreams =
        UpstreamsSummary { total: 1, dirty: 1000, oldest_dirty: Some(1), last_flush: None };
    bench.host.take_over(1);
    bench.node.wait("repair, removal and flush", |node| {
        let did = |so: fn(&Action) -> bool| node.performed.iter().any(so);
        did(|action| matches!(action, Action::ReplaceList { .. }))
            && did(|action| matches!(action, Action::RemoveTaint { .. }))
            && did(|action| *action == Action::FlushUpstreams)
    });
}

/// The contract is for every language: the example in C under its own manifest and the real limits.
#[test]
fn m10_m12_a_policy_in_c_loads_and_answers() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/examples/dual-stack");
    let target = tempfile::tempdir().unwrap();
    let component =
        aether_guest_build::c::policy(&directory, target.path()).unwrap_or_else(|error| panic!("{error}"));
    assert!(component.len() < 64 << 10, "{} bytes", component.len());
    let manifest = std::fs::read_to_string(directory.join("module.toml")).unwrap();
    let bench = Bench::patient();
    bench.load("dual-stack", &manifest, &component).unwrap();
    bench.host.take_over(1);
    let asked = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|one| (*one).to_owned()).collect();
        bench.host.evaluate(&aether_module_host::pod::Pod { addresses, ..pod("web") }).decision
    };
    assert!(matches!(asked(&["10.0.0.2/24", "fd00::2/64"]), Decision::Admit { .. }));
    for (address, words) in [("10.0.0.2/24", "no IPv6"), ("fd00::2/64", "no IPv4")] {
        let Decision::Deny { denial, .. } = asked(&[address]) else { panic!("{address} passes") };
        assert!(denial.message.contains(words) && denial.retry == Retry::Later, "{denial:?}");
    }
    let error = bench.load("dual-stack", &format!("{manifest}settings = {{ a = 1 }}\n"), &component);
    assert!(error.unwrap_err().contains("this policy has no settings"));
}
