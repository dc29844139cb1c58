//! Reload (M08): under load, by a swap of links as a kubelet does it, and from good to bad.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use aether_module_host::compiler::{CompileError, Compiler, InProcess};
use aether_module_host::verdict::Decision;
use aether_test_guests::{Bench, HOSTILE, REQUIRE_ANNOTATION, of, pod, write};

fn denies(code: &str) -> String {
    format!("world = \"pod-policy\"\nsettings = {{ deny = {code:?} }}")
}

#[test]
fn m08_versions_are_swapped_under_load_without_a_failed_call() {
    let bench = Bench::new();
    bench.load("policy", &denies("a"), HOSTILE).unwrap();
    bench.host.take_over(1);
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let caller = || {
            while !stop.load(Ordering::Acquire) {
                let evaluated = bench.host.evaluate(&pod("web"));
                let Decision::Deny { denial, .. } = &evaluated.decision else { panic!("{evaluated:?}") };
                assert!(["a", "b"].contains(&denial.code.as_str()), "{evaluated:?}");
                calls.fetch_add(1, Ordering::AcqRel);
            }
        };
        let callers = [scope.spawn(caller), scope.spawn(caller)];
        for round in 0..50 {
            let code = if round % 2 == 0 { "b" } else { "a" };
            bench.load("policy", &denies(code), HOSTILE).unwrap();
            let seen = calls.load(Ordering::Acquire);
            while calls.load(Ordering::Acquire) == seen && callers.iter().all(|caller| !caller.is_finished())
            {
                std::thread::yield_now();
            }
        }
        stop.store(true, Ordering::Release);
    });
    assert!(calls.load(Ordering::Acquire) > 50);
}

#[test]
fn m08_a_mounted_configmap_is_reloaded_by_the_swap_of_its_link() {
    let bench = Bench::new();
    let directory = bench.modules();
    let version = |name: &str, code: &str| {
        std::fs::create_dir(directory.join(name)).unwrap();
        write(&directory.join(name).join("policy.toml"), denies(code).as_bytes());
        write(&directory.join(name).join("policy.wasm"), HOSTILE);
    };
    version("..1", "first");
    symlink("..1", directory.join("..data")).unwrap();
    for file in ["policy.toml", "policy.wasm"] {
        symlink(format!("..data/{file}"), directory.join(file)).unwrap();
    }
    of(&bench.host.rescan(), "policy").unwrap();
    bench.host.take_over(1);
    let code = || match bench.host.evaluate(&pod("web")).decision {
        Decision::Deny { denial, .. } => denial.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(), "first");
    version("..2", "second");
    symlink("..2", directory.join("..data_tmp")).unwrap();
    std::fs::rename(directory.join("..data_tmp"), directory.join("..data")).unwrap();
    std::fs::remove_dir_all(directory.join("..1")).unwrap();
    of(&bench.host.rescan(), "policy").unwrap();
    assert_eq!(code(), "second");
    assert!(bench.host.rescan().changes.is_empty(), "what did not change is not loaded again");
}

#[test]
fn m08_a_running_good_version_is_never_replaced_by_a_bad_one_and_that_is_said() {
    let bench = Bench::new();
    let settings = "world = \"pod-policy\"\nsettings = { annotations = { team = \"\" } }";
    bench.load("policy", settings, REQUIRE_ANNOTATION).unwrap();
    bench.host.take_over(1);
    for (manifest, component, words) in [
        (settings, &b"text"[..], "no WebAssembly"),
        ("world = \"pod-policy\"\nsettings = { init = \"loop\" }", HOSTILE, "init used more than"),
        ("world = \"pod-policy\"\nnonsense = 1", REQUIRE_ANNOTATION, "unknown field `nonsense`"),
    ] {
        let error = bench.load("policy", manifest, component).unwrap_err();
        assert!(error.contains(words), "{error}");
        let Decision::Deny { denial, .. } = bench.host.evaluate(&pod("web")).decision else { panic!() };
        assert_eq!(denial.code, "annotation");
        assert_eq!(bench.status("policy").problem, error);
    }
    bench.load("policy", &denies("new"), HOSTILE).unwrap();
    assert_eq!(bench.status("policy").problem, "");
}

#[test]
fn m08_a_module_that_is_removed_is_asked_no_more() {
    let bench = Bench::new();
    bench.load("policy", &denies("a"), HOSTILE).unwrap();
    bench.host.take_over(1);
    std::fs::remove_file(bench.modules().join("policy.toml")).unwrap();
    std::fs::remove_file(bench.modules().join("policy.wasm")).unwrap();
    of(&bench.host.rescan(), "policy").unwrap();
    assert_eq!(bench.host.evaluate(&pod("web")).decision, Decision::Admit { changes: vec![] });
    assert!(bench.host.status().is_empty());
}

/// What ran in the agent before is not there any more: M05 speaks where no good version is loaded, for `last-good` too.
#[test]
fn m05_m08_after_a_restart_a_broken_file_is_what_its_failure_policy_says_until_it_is_repaired() {
    for (on_failure, admits) in [("deny", false), ("last-good", false), ("allow", true)] {
        let manifest = format!("world = \"pod-policy\"\non-failure = {on_failure:?}");
        let bench = Bench::patient();
        bench.load("policy", &manifest, HOSTILE).unwrap();
        bench.host.take_over(1);
        let broken = bench.load("policy", &manifest, b"text").unwrap_err();
        let admitted =
            |bench: &Bench| matches!(bench.host.evaluate(&pod("web")).decision, Decision::Admit { .. });
        assert!(admitted(&bench), "{on_failure}: the good one goes on");
        let bench = bench.restarted();
        of(&bench.host.rescan(), "policy").unwrap_err();
        bench.host.take_over(2);
        assert_eq!(admitted(&bench), admits, "{on_failure}");
        let status = bench.status("policy");
        assert_eq!((status.state, status.problem.as_str()), ("rejected", broken.as_str()));
        bench.load("policy", &manifest, HOSTILE).unwrap();
        assert!(admitted(&bench), "{on_failure}: the next good file is taken");
    }
}

/// A compiler that waits until it is let go.
#[derive(Default)]
struct Held {
    /// How many runs have begun, and whether they may end.
    state: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Held {
    fn change(&self, change: impl FnOnce(&mut (u32, bool))) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait(&self, so: impl Fn(&(u32, bool)) -> bool) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| !so(state)).unwrap());
    }
}

impl Compiler for Held {
    fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        self.change(|state| state.0 += 1);
        self.wait(|state| state.1);
        InProcess.compile(wasm)
    }
}

#[test]
fn m11_status_and_problems_are_told_while_a_module_is_compiled() {
    let compiler = Arc::new(Held::default());
    let bench = Bench::compiled_by(compiler.clone());
    bench.put("policy", "world = \"pod-policy\"", HOSTILE);
    write(&bench.modules().join("stray.wasm"), b"x");
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| bench.host.rescan());
        compiler.wait(|state| state.0 == 1);
        // From another thread, which a test that fails can leave behind.
        let (told, heard) = std::sync::mpsc::channel();
        let host = &bench.host;
        let asking = scope.spawn(move || told.send((host.problems(), host.status())));
        let heard = heard.recv_timeout(aether_test_guests::PATIENCE);
        compiler.change(|state| state.1 = true);
        asking.join().unwrap().unwrap();
        of(&reading.join().unwrap(), "policy").unwrap();
        let (problems, status) = heard.expect("an answer while the compiler runs");
        assert!(problems.iter().any(|problem| problem.contains("stray.wasm")), "{problems:?}");
        let [status] = status.as_slice() else { panic!("{status:?}") };
        assert_eq!((status.state, status.problem.as_str()), ("rejected", "it is being compiled and tried"));
    });
    assert_eq!(bench.status("policy").problem, "");
}
