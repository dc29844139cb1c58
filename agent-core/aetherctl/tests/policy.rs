//! A policy from the template to the file that an agent takes (M12), by the program alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail as its body does")]

use std::path::Path;
use std::process::{Command, Output};

use aether_test_guests::{NAMESPACE_LIST, REFUSE_HOST_PORTS, REQUIRE_ANNOTATION};

fn aetherctl(directory: &Path, arguments: &[&str]) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_aetherctl"));
    let compiler = program.with_file_name("aether-modc");
    assert!(
        compiler.is_file(),
        "{} is missing; build it with: cargo build -p aether-modc",
        compiler.display()
    );
    Command::new(program).arg("policy").args(arguments).current_dir(directory).output().unwrap()
}

/// What it printed, where it ended with this code.
fn ended(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(code), "{text}\n{said}");
    format!("{text}{said}")
}

#[test]
fn m12_the_template_is_built_tried_packed_and_inspected_by_following_its_readme() {
    let root = tempfile::tempdir().unwrap();
    ended(&aetherctl(root.path(), &["new", "shop-team"]), 0);
    let policy = root.path().join("shop-team");
    let readme = std::fs::read_to_string(policy.join("README.md")).unwrap();
    assert!(
        readme.contains("/etc/aether/modules/shop-team/module.toml") && !readme.contains("{{"),
        "{readme}"
    );
    let text = ended(&aetherctl(&policy, &["test"]), 0);
    assert!(text.contains("denied    deny      deny     ok"), "{text}");
    ended(&aetherctl(&policy, &["pack"]), 0);
    let text = ended(&aetherctl(&policy, &["inspect", "module.wasm"]), 0);
    assert!(text.contains("world    pod-policy") && text.contains("nothing has to be granted"), "{text}");
    // A scenario that comes out otherwise, a manifest that no agent takes, a component that is packed again.
    let scenario = policy.join("scenarios/denied.toml");
    let text = std::fs::read_to_string(&scenario).unwrap().replace("\"deny\"", "\"admit\"");
    std::fs::write(&scenario, text).unwrap();
    let text = ended(&aetherctl(&policy, &["test"]), 5);
    assert!(text.contains("NOT AS EXPECTED"), "{text}");
    let text = ended(&aetherctl(&policy, &["pack", "module.wasm"]), 1);
    assert!(text.contains("is a component already"), "{text}");
    std::fs::write(policy.join("module.toml"), "world = \"pod-policy\"\ngrnt = 1\n").unwrap();
    let text = ended(&aetherctl(&policy, &["test"]), 1);
    assert!(text.contains("unknown field `grnt`"), "{text}");
}

/// One of the examples is in C: it is built, tried and packed by the same commands.
#[test]
fn m12_a_policy_in_c_is_built_tried_packed_and_inspected() {
    let root = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/examples/dual-stack");
    let policy = root.path().join("dual-stack");
    std::fs::create_dir_all(policy.join("scenarios")).unwrap();
    for file in ["policy.c", "module.toml", "scenarios/both.toml", "scenarios/v4-only.toml"] {
        std::fs::copy(example.join(file), policy.join(file)).unwrap();
    }
    let text = ended(&aetherctl(&policy, &["test"]), 0);
    assert!(text.contains("v4-only   deny      deny     ok"), "{text}");
    ended(&aetherctl(&policy, &["pack"]), 0);
    let text = ended(&aetherctl(&policy, &["inspect", "module.wasm"]), 0);
    for words in ["world    pod-policy", "contract 0.1.0", "nothing has to be granted"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    assert!(!text.contains("wasi"), "{text}");
}

/// Those in Rust, as they are built for the tests, on the scenarios that stand beside their sources.
#[test]
fn m12_each_example_in_rust_decides_what_its_scenarios_say() {
    let examples = [
        ("require-annotation", REQUIRE_ANNOTATION),
        ("refuse-host-ports", REFUSE_HOST_PORTS),
        ("namespace-list", NAMESPACE_LIST),
    ];
    for (name, component) in examples {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules/examples").join(name);
        let root = tempfile::tempdir().unwrap();
        let policy = root.path().join(name);
        std::fs::create_dir(&policy).unwrap();
        std::fs::copy(sources.join("module.toml"), policy.join("module.toml")).unwrap();
        std::fs::write(policy.join("module.wasm"), component).unwrap();
        std::os::unix::fs::symlink(sources.join("scenarios"), policy.join("scenarios")).unwrap();
        let text = ended(&aetherctl(&policy, &["test"]), 0);
        let scenarios = std::fs::read_dir(sources.join("scenarios")).unwrap().count();
        assert!(scenarios >= 3 && text.matches(" ok ").count() == scenarios, "{text}");
    }
}

#[test]
fn m12_what_cannot_be_done_is_said_with_the_remedy() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("text.wasm"), "text").unwrap();
    let text = ended(&aetherctl(root.path(), &["inspect", "text.wasm"]), 1);
    assert!(text.contains("aetherctl policy pack"), "{text}");
    let text = ended(&aetherctl(root.path(), &["new", "Not A Name"]), 1);
    assert!(text.contains("lower-case letters"), "{text}");
    let text = ended(&aetherctl(root.path(), &["new", "x", "--sdk", "/nonexistent"]), 1);
    assert!(text.contains("--sdk"), "{text}");
}

/// What is compiled is run as this program: never out of a directory that somebody has made before, under a name that they guessed.
#[test]
fn m09_a_directory_that_was_made_before_the_trial_is_not_used() {
    let (root, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let policy = root.path().join("text");
    std::fs::create_dir_all(policy.join("scenarios")).unwrap();
    std::fs::write(policy.join("module.toml"), "world = \"pod-policy\"\n").unwrap();
    std::fs::write(policy.join("module.wasm"), "text").unwrap();
    std::fs::write(policy.join("scenarios/a.toml"), "expect = \"admit\"\npod = {}\n").unwrap();
    // The shell's process is the one that the program runs in.
    let script = "mkdir -m 777 \"$TMPDIR/aetherctl-policy-$$\" && exec \"$0\" policy test";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_aetherctl")])
        .current_dir(&policy)
        .env("TMPDIR", temporary.path())
        .output()
        .unwrap();
    let text = ended(&output, 1);
    assert!(text.contains("it is no WebAssembly"), "{text}");
    let left: Vec<_> =
        std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [made] = left.as_slice() else { panic!("only what was made before is left: {left:?}") };
    assert_eq!(std::fs::read_dir(made).unwrap().count(), 0, "nothing was put into {}", made.display());
}
