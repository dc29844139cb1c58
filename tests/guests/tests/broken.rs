//! What cannot be loaded: rejected, with a status that names module, cause and remedy; the others go on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is test code: a surprise is a failure"
)]

use std::os::unix::fs::{PermissionsExt as _, chown};

use aether_domain::text::sha256;
use aether_module_host::verdict::Decision;
use aether_test_guests::{Bench, HOSTILE, REQUIRE_ANNOTATION, ROGUE_TAINT, of, pod, write};

#[path = "broken/made.rs"]
mod made;

const POLICY: &str = "world = \"pod-policy\"\n";
const ALLOW: &str = "world = \"pod-policy\"\non-failure = \"allow\"\n";

#[test]
fn m02_m04_what_is_no_usable_component_is_rejected_in_words_and_the_others_go_on() {
    let bench = Bench::new();
    bench.load("good", POLICY, HOSTILE).unwrap();
    let core = made::dummy_core("policy", "pod-policy");
    let base = made::component(&made::dummy_core("behaviour", "base"));
    let other_track = made::text_component(
        "(import \"aether:base/log@0.2.0\" (instance (export \"f\" (func)))) (instance $e) (export \"aether:policy/pods@0.1.0\" (instance $e))",
    );
    let wasi = made::text_component(
        "(import \"wasi:cli/environment@0.2.0\" (instance (export \"f\" (func)))) (instance $e) (export \"aether:policy/pods@0.1.0\" (instance $e))",
    );
    let empty = made::text_component("");
    let cases: [(&str, &[u8], &str); 10] = [
        ("zero", b"", "the file is empty"),
        ("text", b"hello", "it is no WebAssembly"),
        ("core", &core, "it is a core module"),
        ("native", b"\x7fELF\x02\x01\x01", "never compiled code"),
        ("cut", &HOSTILE[..HOSTILE.len() / 2], "does not compile"),
        (
            "empty",
            &empty,
            "does not export aether:policy/pods, which a module of world pod-policy must; it exports nothing",
        ),
        ("wrong-world", &base, "it exports aether:behaviour/lifecycle@0.1.0"),
        ("next-track", &other_track, "it offers aether:base/log@0.1.0"),
        ("wasi", &wasi, "wasm32-unknown-unknown"),
        ("start-loop", &made::start("(loop br 0)"), "instantiation used more than 100 ms"),
    ];
    for (name, component, words) in cases {
        let error = bench.load(name, ALLOW, component).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
        let status = bench.status(name);
        assert_eq!((status.state, status.problem), ("rejected", error), "{name}");
        bench.host.take_over(1);
        let evaluated = bench.host.evaluate(&pod("web"));
        assert!(matches!(evaluated.decision, Decision::Admit { .. }), "{name}: {evaluated:?}");
    }
    assert_eq!(bench.status("good").state, "enabled");
}

#[test]
fn m04_a_table_bomb_in_the_start_function_is_refused() {
    let bench = Bench::new();
    let bomb = made::start(
        "(if (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const 100000000))) (then unreachable))",
    );
    let error = bench.load("bomb", POLICY, &bomb).unwrap_err();
    assert!(error.contains("a table of 100000001 elements, where limits.table is 10000"), "{error}");
}

#[test]
fn m04_a_file_of_200_mb_is_not_read() {
    let bench = Bench::new();
    bench.put("large", ALLOW, b"");
    let file = std::fs::OpenOptions::new().write(true).open(bench.modules().join("large.wasm")).unwrap();
    file.set_len(200 << 20).unwrap();
    let error = of(&bench.host.rescan(), "large").unwrap_err();
    assert!(error.contains("larger than the 4194304 bytes of limits.component"), "{error}");
}

#[test]
fn m03_an_import_that_is_not_granted_is_named_with_its_grant() {
    let bench = Bench::new();
    let manifest = "world = \"taint-gate\"\ngrant = { node = { view = true } }\nsettings = { act = \"\" }";
    bench.host.take_over(1);
    let error = bench.load("gate", manifest, ROGUE_TAINT).unwrap_err();
    assert!(error.contains("imports aether:node/taint@0.1.0, which is not granted to it"), "{error}");
    assert!(error.contains("add node.remove-taints = [\"key\"] to [grant]"), "{error}");
    let status = bench.status("gate");
    assert_eq!((status.world, status.state, status.problem), ("taint-gate", "rejected", error));
}

#[test]
fn m02_m11_a_behaviour_that_cannot_be_loaded_has_a_status_that_says_why() {
    let bench = Bench::new();
    bench.host.take_over(1);
    for (name, manifest, component, words) in [
        ("text", "world = \"taint-gate\"", &b"text"[..], "no WebAssembly"),
        ("key", "world = \"taint-gate\"\nkey = 1", ROGUE_TAINT, "unknown field `key`"),
        ("upstream-flush", "world = ", ROGUE_TAINT, "module.toml is not valid"),
    ] {
        let error = bench.load(name, manifest, component).unwrap_err();
        assert!(error.contains(words), "{error}");
        let status = bench.status(name);
        assert_eq!((status.state, status.problem), ("rejected", error), "{name}");
    }
    assert!(matches!(bench.host.evaluate(&pod("web")).decision, Decision::Admit { .. }));
    let granted = "world = \"taint-gate\"\ngrant = { node = { view = true, remove-taints = [\"x\"] } }\nsettings = { act = \"\" }";
    bench.load("text", granted, ROGUE_TAINT).unwrap();
    let status = bench.status("text");
    assert_eq!((status.state, status.problem.as_str()), ("enabled", ""));
    std::fs::remove_file(bench.modules().join("key.toml")).unwrap();
    bench.host.rescan();
    assert!(!bench.host.status().iter().any(|status| status.name.as_str() == "key"));
}

#[test]
fn m09_a_digest_that_is_pinned_must_be_the_one() {
    let bench = Bench::new();
    let pinned = format!("{POLICY}sha256 = \"{}\"", "0".repeat(64));
    let error = bench.load("pinned", &pinned, HOSTILE).unwrap_err();
    assert!(error.contains("where module.toml pins 0000"), "{error}");
    let right = format!("{POLICY}sha256 = \"{}\"", sha256(HOSTILE));
    bench.load("pinned", &right, HOSTILE).unwrap();
}

#[test]
fn m09_a_file_that_others_can_write_is_not_taken() {
    let bench = Bench::new();
    bench.put("open", POLICY, HOSTILE);
    let path = bench.modules().join("open.wasm");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let error = of(&bench.host.rescan(), "open").unwrap_err();
    assert!(error.contains("its mode is 0666") && error.contains("chmod go-w"), "{error}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    chown(bench.modules().join("open.toml"), Some(1000), None).unwrap();
    let error = of(&bench.host.rescan(), "open").unwrap_err();
    assert!(error.contains("it belongs to uid 1000"), "{error}");
    chown(bench.modules().join("open.toml"), Some(0), None).unwrap();
    of(&bench.host.rescan(), "open").unwrap();
}

#[test]
fn m01_m08_manifests_with_errors_and_doubled_names_are_said() {
    let bench = Bench::new();
    for (name, manifest, words) in [
        ("unknown-key", "world = \"pod-policy\"\nonfailure = \"deny\"", "unknown field `onfailure`"),
        ("wrong-type", "world = \"pod-policy\"\norder = \"1\"", "expected i64"),
        ("no-toml", "world = ", "module.toml is not valid"),
    ] {
        let error = bench.load(name, manifest, HOSTILE).unwrap_err();
        assert!(error.contains(words) && error.contains(&format!("{name}.toml")), "{error}");
    }
    let twice = bench.modules().join("good");
    bench.put("good", POLICY, HOSTILE);
    std::fs::create_dir(&twice).unwrap();
    write(&twice.join("module.toml"), POLICY.as_bytes());
    write(&twice.join("module.wasm"), HOSTILE);
    let rescanned = bench.host.rescan();
    assert!(of(&rescanned, "good").unwrap_err().contains("is there twice"), "{rescanned:?}");
    assert!(rescanned.problems.iter().any(|problem| problem.contains("module good is there twice")));
}

#[test]
fn m09_a_corrupt_foreign_or_older_artefact_is_compiled_again() {
    let bench = Bench::new();
    bench.load("policy", POLICY, REQUIRE_ANNOTATION).unwrap_err();
    let settings = format!("{POLICY}settings = {{ annotations = {{ team = \"\" }} }}");
    bench.load("policy", &settings, REQUIRE_ANNOTATION).unwrap();
    let artefact = artefact(&bench);
    let good = std::fs::read(&artefact).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let key = std::fs::read(bench.cache().join("key")).unwrap();
    let of_other_engine = {
        let mut config = wasmtime::Config::new();
        config.wasm_component_model(true);
        let engine = wasmtime::Engine::new(&config).unwrap();
        engine.precompile_component(REQUIRE_ANNOTATION).unwrap()
    };
    assert_eq!(authentic(&key, &good[32..]), good, "the code is made here as the cache makes it");
    for (what, bytes) in [
        ("corrupt", flipped),
        ("cut", good[..100].to_vec()),
        ("empty", Vec::new()),
        ("under another key", authentic(&[7; 64], &good[32..])),
        ("authentic, and of another engine", authentic(&key, &of_other_engine)),
        ("authentic, and no code", authentic(&key, b"text")),
    ] {
        std::fs::write(&artefact, bytes).unwrap();
        std::fs::remove_file(bench.modules().join("policy.toml")).unwrap();
        bench.host.rescan();
        bench.load("policy", &settings, REQUIRE_ANNOTATION).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(std::fs::read(&artefact).unwrap(), good, "{what}: it was compiled again");
    }
}

/// The artefact as the cache keeps it under this key.
fn authentic(key: &[u8], artefact: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit as _, Mac as _};
    let digest = sha256(REQUIRE_ANNOTATION);
    let mut code = hmac::Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    for part in [digest.as_bytes(), b"\n", aether_module_host::engine::FLAGS.as_bytes(), b"\n", artefact] {
        code.update(part);
    }
    [code.finalize().into_bytes().as_slice(), artefact].concat()
}

fn artefact(bench: &Bench) -> std::path::PathBuf {
    let entries = std::fs::read_dir(bench.cache()).unwrap();
    let mut artefacts = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some());
    artefacts.next().expect("an artefact in the cache")
}
