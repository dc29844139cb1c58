//! Policies that are not taken for their name or place, or that cannot be seen: nobody gets past them (M05), and one that
//! runs goes on (M08).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use aether_module_host::limits::MODULES_MAX;
use aether_module_host::verdict::{Decision, Retry};
use aether_module_host::{Looked, UNAVAILABLE};
use aether_test_guests::{Bench, HOSTILE, of, pod, write};

const ALLOW: &str = "world = \"pod-policy\"\non-failure = \"allow\"\n";

/// Whose denial a pod gets, and its code; none where it is admitted.
fn denied(bench: &Bench) -> Option<(String, String)> {
    match bench.host.evaluate(&pod("web")).decision {
        Decision::Deny { module, denial } => Some((module.to_string(), denial.code)),
        Decision::Admit { .. } => None,
        other @ Decision::Ignore { .. } => panic!("{other:?}"),
    }
}

fn by(module: &str, code: &str) -> (String, String) {
    (module.to_owned(), code.to_owned())
}

/// As many modules as are taken, all of them harmless.
fn full(bench: &Bench) {
    for i in 0..MODULES_MAX {
        bench.put(&format!("m{i:02}"), ALLOW, b"text");
    }
}

#[test]
fn m08_a_policy_that_runs_goes_on_when_there_are_too_many_and_that_is_said() {
    let bench = Bench::new();
    bench.load("zz", "world = \"pod-policy\"\nsettings = { deny = \"x\" }", HOSTILE).unwrap();
    bench.host.take_over(1);
    full(&bench);
    let rescanned = bench.host.rescan();
    let error = of(&rescanned, "zz").unwrap_err();
    assert!(error.contains("module zz is not taken: at most 64 modules are"), "{error}");
    assert!(rescanned.problems.contains(&error), "{rescanned:?}");
    assert_eq!(denied(&bench), Some(by("zz", "x")));
    let status = bench.status("zz");
    assert_eq!((status.state, status.problem), ("enabled", error));
    std::fs::remove_file(bench.modules().join("m00.toml")).unwrap();
    of(&bench.host.rescan(), "zz").unwrap();
    assert_eq!(bench.status("zz").problem, "");
}

#[test]
fn m05_one_module_too_many_counts_as_its_failure_policy_says_and_as_nothing_where_it_is_no_policy() {
    for (manifest, denies) in [
        ("world = \"pod-policy\"", true),
        (ALLOW, false),
        ("world = \"taint-gate\"", false),
        ("world = ", true),
    ] {
        let bench = Bench::new();
        full(&bench);
        bench.put("zz", manifest, HOSTILE);
        let rescanned = bench.host.rescan();
        bench.host.take_over(1);
        assert_eq!(denied(&bench), denies.then(|| by("zz", UNAVAILABLE)), "{manifest}");
        assert!(rescanned.problems.iter().any(|problem| problem.contains("module zz")), "{rescanned:?}");
    }
}

#[test]
fn m05_nobody_gets_past_a_policy_whose_name_is_none() {
    let bench = Bench::new();
    write(&bench.modules().join("Team.toml"), b"world = \"pod-policy\"");
    write(&bench.modules().join("Team.wasm"), HOSTILE);
    bench.host.rescan();
    bench.host.take_over(1);
    assert_eq!(denied(&bench), Some(by("Team.toml", UNAVAILABLE)));
    let status = bench.status("Team.toml");
    assert!(status.state == "rejected" && status.problem.contains("Team.toml is not taken"), "{status:?}");
    write(&bench.modules().join("Team.toml"), ALLOW.as_bytes());
    bench.host.rescan();
    assert_eq!(denied(&bench), None);
    std::fs::rename(bench.modules().join("Team.toml"), bench.modules().join("team.toml")).unwrap();
    std::fs::rename(bench.modules().join("Team.wasm"), bench.modules().join("team.wasm")).unwrap();
    of(&bench.host.rescan(), "team").unwrap();
    assert!(!bench.host.status().iter().any(|status| status.name.as_str() == "Team.toml"));
}

#[test]
fn m05_a_folder_whose_name_is_none_is_a_policy_if_it_holds_a_manifest() {
    let bench = Bench::new();
    std::fs::create_dir(bench.modules().join("lost+found")).unwrap();
    let rescanned = bench.host.rescan();
    bench.host.take_over(1);
    assert!(rescanned.problems.iter().any(|problem| problem.contains("lost+found is not taken")));
    assert_eq!(denied(&bench), None);
    write(&bench.modules().join("lost+found/module.toml"), b"world = \"pod-policy\"");
    bench.host.rescan();
    assert_eq!(denied(&bench), Some(by("lost+found", UNAVAILABLE)));
}

#[test]
fn m05_a_name_that_is_no_text_is_told_of_and_nobody_gets_past_it() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new();
    let name = std::ffi::OsStr::from_bytes(b"te\xffam.toml");
    write(&bench.modules().join(name), ALLOW.as_bytes());
    bench.host.rescan();
    bench.host.take_over(1);
    assert_eq!(denied(&bench), Some(by("te\u{fffd}am.toml", UNAVAILABLE)));
}

/// A behaviour that is there twice is no policy: it goes on, and no pod waits for it.
#[test]
fn m08_a_behaviour_that_is_there_twice_goes_on_and_denies_nobody() {
    let bench = Bench::new();
    let manifest = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"x\"] } }\nsettings = { act = \"\" }";
    bench.load("gate", manifest, aether_test_guests::ROGUE_TAINT).unwrap();
    bench.host.take_over(1);
    for name in ["gate", "taint-gate"] {
        std::fs::create_dir(bench.modules().join(name)).unwrap();
        bench.put(name, manifest, aether_test_guests::ROGUE_TAINT);
    }
    let rescanned = bench.host.rescan();
    let error = of(&rescanned, "gate").unwrap_err();
    assert!(error.contains("is there twice"), "{error}");
    let status = bench.status("gate");
    assert_eq!((status.state, status.problem), ("enabled", error));
    assert_eq!(denied(&bench), None, "{:?}", bench.host.status());
}

#[test]
fn m05_a_directory_that_was_never_read_lets_only_exempt_pods_start() {
    let bench = Bench::new();
    std::fs::remove_dir(bench.modules()).unwrap();
    std::fs::write(bench.modules(), "no directory").unwrap();
    let rescanned = bench.host.rescan();
    assert_eq!(rescanned.directory, Looked::Unreadable);
    bench.host.take_over(1);
    let Decision::Deny { module, denial } = bench.host.evaluate(&pod("web")).decision else { panic!() };
    assert_eq!((denial.code.as_str(), denial.retry), (UNAVAILABLE, Retry::Later));
    assert!(denial.message.contains("cannot read the directory of modules"), "{}", denial.message);
    let mut exempt = pod("web");
    exempt.namespace = "kube-system".to_owned();
    assert!(matches!(bench.host.evaluate(&exempt).decision, Decision::Admit { .. }));
    let status = bench.status(module.as_str());
    assert_eq!((status.state, &status.problem), ("rejected", &bench.host.problems()[0]));
    std::fs::remove_file(bench.modules()).unwrap();
    std::fs::create_dir(bench.modules()).unwrap();
    assert_eq!(bench.host.rescan().directory, Looked::Read);
    assert_eq!((denied(&bench), bench.host.status().len()), (None, 0));
}

#[test]
fn m08_a_directory_that_cannot_be_read_any_more_changes_nothing() {
    let bench = Bench::new();
    bench.load("policy", "world = \"pod-policy\"\nsettings = { deny = \"x\" }", HOSTILE).unwrap();
    bench.host.take_over(1);
    std::fs::rename(bench.modules(), bench.modules().with_extension("away")).unwrap();
    std::fs::write(bench.modules(), "no directory").unwrap();
    let rescanned = bench.host.rescan();
    assert!(rescanned.problems[0].contains("what was loaded stays"), "{rescanned:?}");
    assert_eq!(denied(&bench), Some(by("policy", "x")));
    assert_eq!(bench.host.status().len(), 1);
}
