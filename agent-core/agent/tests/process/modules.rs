//! Modules in the running agent: M02, M03, M05, M06, M07, M08, M09, M11, K09.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use aether_api::cni::Known;
use aether_test_guests::{HOSTILE, REQUIRE_ANNOTATION};
use rustix::process::Signal;
use serde_json::Value;
use tonic::Code;

use crate::calls::{Admin, Plugin, admin, plugin, record_file};
use crate::metrics::scrape;
use crate::support::{Agent, Node, until};

/// What a policy takes of the processor is more in a debug build on a busy machine.
const POLICY: &str = "world = \"pod-policy\"\nlimits = { call-ms = 1000, init-ms = 5000 }\n";
const PATIENT: [&str; 2] = ["--policy-budget-ms", "5000"];

/// Writes a file as an operator does: beside, and renamed over.
fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let temp = path.with_extension("new");
    std::fs::write(&temp, bytes).unwrap();
    std::fs::set_permissions(&temp, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::rename(&temp, path).unwrap();
}

fn put(node: &Node, name: &str, manifest: &str, component: &[u8]) {
    write(&node.path("modules").join(format!("{name}.wasm")), component);
    write(&node.path("modules").join(format!("{name}.toml")), manifest.as_bytes());
}

fn compiler_is_there() {
    let program = Path::new(env!("CARGO_BIN_EXE_aether-agent")).with_file_name("aether-modc");
    assert!(program.is_file(), "{} is missing; build it with: cargo build -p aether-modc", program.display());
}

/// An owner with this policy loaded.
async fn with_policy(node: &Node, manifest: &str, component: &[u8]) -> (Agent, Plugin, Admin) {
    asked_by(node.start_with("a", &PATIENT), node, manifest, component).await
}

async fn asked_by(agent: Agent, node: &Node, manifest: &str, component: &[u8]) -> (Agent, Plugin, Admin) {
    compiler_is_there();
    put(node, "team", manifest, component);
    agent.logged("serving on");
    let mut asked = admin(&agent).await;
    asked.module("team", "loaded", |module| module.loads == 1).await;
    (agent, plugin(node).await, asked)
}

fn verdicts(module: &aether_api::admin::Module, by: &str, verdict: &str) -> u64 {
    let one = module.verdicts.iter().find(|one| one.by == by && one.verdict == verdict);
    one.map_or(0, |one| one.count)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m02_c07_built_in_modules_are_warm_on_a_standby_and_enabled_by_the_takeover() {
    let node = Node::new();
    let owner = node.serving("a");
    let standby = node.start("b");
    let mut asked = admin(&standby).await;
    for module in ["conflist-reassert", "taint-gate", "upstream-flush"] {
        let seen = asked.module(module, "disabled", |module| module.state == "disabled").await;
        assert_eq!((seen.source.as_str(), seen.calls), ("builtin", 0), "no acting export is called");
        assert_eq!(seen.digest.len(), 64);
    }
    assert_eq!(asked.modules().await.role, "standby");
    let mut of_owner = admin(&owner).await;
    of_owner.module("taint-gate", "enabled", |module| module.state == "enabled").await;
    owner.kill();
    for module in ["conflist-reassert", "taint-gate", "upstream-flush"] {
        asked.module(module, "enabled", |module| module.state == "enabled" && module.calls > 0).await;
    }
    let enabled = standby.logged("enabled the modules");
    assert!(enabled.contains("\"ms\":"), "{enabled}");
    let lines = standby.lines();
    let at = |part: &str| lines.iter().position(|line| line.contains(part)).unwrap();
    assert!(at("serving on") < at("enabled the modules"), "modules are enabled behind serving (T05)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m07_k09_denied_ignored_and_changed_pods_are_what_the_policy_says() {
    let node = Node::new();
    let manifest = format!("{POLICY}[grant]\nchange = [\"label\"]\n");
    let (agent, mut calls, mut asked) = with_policy(&node, &manifest, HOSTILE).await;
    let denied = calls.add_pod("large-id", "prod", "long-ish").await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied, "{denied}");
    assert!(denied.message().contains("the policy team denies pod prod/long-ish: no"), "{denied}");
    assert_eq!(calls.check("large-id").await.unwrap(), Known::Missing, "nothing of it is recorded");
    let later = calls.add_pod("later-id", "prod", "later").await.unwrap_err();
    assert_eq!(later.code(), Code::ResourceExhausted, "which the plugin makes code 11 of: {later}");
    assert!(later.message().contains("does not let pod prod/later start yet: no"), "{later}");
    calls.add_pod("left", "prod", "ignore").await.unwrap();
    assert_eq!(calls.check("left").await.unwrap(), Known::Unmanaged);
    calls.add_pod("labelled", "prod", "label").await.unwrap();
    let text = std::fs::read_to_string(node.state("pods").join(record_file("labelled"))).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record["policyLabels"]["k"], "v", "{text}");
    let refused = calls.add_pod("b", "prod", "bypass").await.unwrap_err();
    assert!(refused.message().contains("grant.change"), "{refused}");
    let team = asked.module("team", "asked", |module| verdicts(module, "module", "deny") == 3).await;
    assert_eq!(verdicts(&team, "module", "ignore"), 1, "{team:?}");
    assert_eq!(verdicts(&team, "module", "admit-with"), 1, "{team:?}");
    let text = scrape(&agent.admin_socket());
    let series = "aether_module_verdicts_total{module=\"team\",by=\"module\",verdict=\"deny\"} 3";
    assert!(text.contains(series), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m07_namespaces_of_the_system_and_of_the_release_are_exempt_before_any_module_runs() {
    compiler_is_there();
    let node = Node::new();
    put(&node, "team", &format!("{POLICY}[settings]\nnonsense = 1\n"), HOSTILE);
    let agent = node.start_with("a", &["--release-namespace", "aether"]);
    agent.logged("serving on");
    let mut calls = plugin(&node).await;
    for namespace in ["kube-system", "aether"] {
        calls.add_pod(namespace, namespace, "panic").await.unwrap();
    }
    assert_eq!(calls.add_pod("x", "prod", "web").await.unwrap_err().code(), Code::ResourceExhausted);
}

/// M9: an engine that reserves gigabytes for each memory does not start there. Half of it is what the allocator reserves for
/// each thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m04_with_two_gigabytes_of_address_space_policies_answer_and_a_bomb_is_stopped() {
    let node = Node::new();
    let agent = node.start_confined("a", 2 << 30, &PATIENT);
    let (_agent, mut calls, mut asked) = asked_by(agent, &node, POLICY, HOSTILE).await;
    let denied = calls.add_pod("bomb", "prod", "memory").await.unwrap_err();
    assert!(denied.message().contains("could not answer"), "{denied}");
    for pod in 0..20 {
        calls.add_pod(&format!("good-{pod}"), "prod", "web").await.unwrap();
    }
    let team = asked.module("team", "counted", |module| module.calls > 20).await;
    assert_eq!(team.state, "enabled", "{team:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m05_a_policy_that_cannot_answer_denies_unless_its_manifest_says_otherwise() {
    let node = Node::new();
    let (_agent, mut calls, mut asked) = with_policy(&node, POLICY, HOSTILE).await;
    for pod in ["panic", "memory", "loop", "deep", "fault"] {
        let denied = calls.add_pod(pod, "prod", pod).await.unwrap_err();
        assert_eq!(denied.code(), Code::ResourceExhausted, "{pod}: it may answer later: {denied}");
        assert!(denied.message().contains("could not answer"), "{pod}: {denied}");
        // Nobody else is affected.
        calls.add_pod(&format!("good-{pod}"), "prod", "web").await.unwrap();
    }
    let team =
        asked.module("team", "counted", |module| verdicts(module, "failure-policy", "deny") >= 4).await;
    assert!(team.failures.contains_key("trap") && team.failures.contains_key("deadline"), "{team:?}");
    assert!(!team.last_error.is_empty(), "{team:?}");
    put(&node, "team", &format!("{POLICY}on-failure = \"allow\"\n"), HOSTILE);
    asked.module("team", "allowing", |module| module.on_failure == "allow").await;
    calls.add_pod("again", "prod", "panic").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m04_m05_a_file_that_is_no_module_denies_says_so_and_allow_lets_pods_pass() {
    let node = Node::new();
    put(&node, "team", POLICY, b"not a component");
    let agent = node.serving("a");
    let (mut calls, mut asked) = (plugin(&node).await, admin(&agent).await);
    let denied = calls.add("one").await.unwrap_err();
    assert!(denied.code() == Code::ResourceExhausted && denied.message().contains("team"), "{denied}");
    let team = asked.module("team", "rejected", |module| module.state == "rejected").await;
    assert!(team.problem.contains("WebAssembly"), "{team:?}");
    for module in ["conflist-reassert", "taint-gate", "upstream-flush"] {
        asked.module(module, "enabled", |module| module.state == "enabled").await;
    }
    put(&node, "team", &format!("{POLICY}on-failure = \"allow\"\n"), b"not a component");
    asked.module("team", "allowing", |module| module.on_failure == "allow").await;
    calls.add("one").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m05_while_the_directory_was_never_read_only_exempt_pods_start_and_it_is_tried_again() {
    let node = Node::new();
    let directory = node.path("modules");
    std::fs::write(&directory, "no directory").unwrap();
    let agent = node.serving("a");
    let (mut calls, mut asked) = (plugin(&node).await, admin(&agent).await);
    let denied = calls.add("one").await.unwrap_err();
    assert_eq!(denied.code(), Code::ResourceExhausted, "{denied}");
    assert!(denied.message().contains("cannot read the directory of modules"), "{denied}");
    calls.add_pod("exempt", "kube-system", "web").await.unwrap();
    let all = asked.modules().await;
    assert!(all.problems.iter().any(|problem| problem.contains("cannot read")), "{all:?}");
    // Empty before and after: nothing that a look from outside would tell apart.
    std::fs::remove_file(&directory).unwrap();
    std::fs::create_dir(&directory).unwrap();
    until("the directory read", || {
        let text = scrape(&agent.admin_socket());
        if text.contains("aether_modules_directory_problems 0") { Ok(()) } else { Err(text) }
    });
    calls.add("one").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m06_an_audited_policy_reports_and_denies_nobody() {
    let node = Node::new();
    let manifest = format!("{POLICY}mode = \"audit\"\n[settings]\ndeny = \"all\"\n");
    let (_agent, mut calls, mut asked) = with_policy(&node, &manifest, HOSTILE).await;
    calls.add("one").await.unwrap();
    calls.add_pod("two", "prod", "panic").await.unwrap();
    let team = asked.module("team", "asked", |module| module.calls >= 2).await;
    assert_eq!((team.mode.as_str(), verdicts(&team, "module", "deny")), ("audit", 1), "{team:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m08_a_copied_file_and_a_swap_of_links_are_taken_and_a_bad_version_never_replaces_a_good_one() {
    let node = Node::new();
    let (_agent, mut calls, mut asked) = with_policy(&node, POLICY, HOSTILE).await;
    calls.add("one").await.unwrap();
    put(&node, "team", &format!("{POLICY}version = \"2\"\n[settings]\ndeny = \"closed\"\n"), HOSTILE);
    asked.module("team", "reloaded", |module| module.version == "2").await;
    assert_eq!(calls.add("two").await.unwrap_err().code(), Code::PermissionDenied);
    let good = asked.module("team", "good", |_| true).await.digest;
    write(&node.path("modules/team.wasm"), b"(module)");
    let team = asked.module("team", "with a problem", |module| !module.problem.is_empty()).await;
    assert_eq!((team.digest.as_str(), team.state.as_str()), (good.as_str(), "enabled"), "{team:?}");
    assert_eq!(calls.add("three").await.unwrap_err().code(), Code::PermissionDenied, "the good one goes on");
    // As the kubelet mounts a ConfigMap: the keys are links into a directory that a link names.
    let mounted = node.path("modules");
    for file in ["team.wasm", "team.toml"] {
        std::fs::remove_file(mounted.join(file)).unwrap();
    }
    let version = |name: &str, component: &[u8]| {
        write(&mounted.join(name).join("ns.wasm"), component);
        write(
            &mounted.join(name).join("ns.toml"),
            format!("{POLICY}[settings]\nannotations = {{ team = \"\" }}\n").as_bytes(),
        );
        symlink(name, mounted.join("..data_tmp")).unwrap();
        std::fs::rename(mounted.join("..data_tmp"), mounted.join("..data")).unwrap();
    };
    version("..1", b"text");
    for key in ["ns.wasm", "ns.toml"] {
        symlink(Path::new("..data").join(key), mounted.join(key)).unwrap();
    }
    asked.module("ns", "rejected", |module| module.state == "rejected").await;
    version("..2", REQUIRE_ANNOTATION);
    asked.module("ns", "taken", |module| module.loads == 1 && module.problem.is_empty()).await;
    let denied = calls.add("four").await.unwrap_err();
    assert!(denied.message().contains("the annotation team is missing"), "{denied}");
    let all = asked.modules().await;
    assert!(!all.modules.iter().any(|module| module.name == "team"), "what is gone is gone: {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m09_a_compiled_module_is_kept_and_the_next_agent_needs_no_compiler() {
    let node = Node::new();
    let (agent, mut calls, _) = with_policy(&node, POLICY, HOSTILE).await;
    calls.add("one").await.unwrap();
    agent.stop();
    let agent = node.start_with("a", &["--module-compiler", "/nonexistent"]);
    let mut asked = admin(&agent).await;
    asked.module("team", "loaded from the cache", |module| module.loads == 1).await;
    put(&node, "other", POLICY, REQUIRE_ANNOTATION);
    let other = asked.module("other", "refused", |module| module.problem.contains("/nonexistent")).await;
    assert_eq!(other.state, "rejected");
}

/// The compiler waits on a pipe until the test lets it go: status and metrics do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m11_status_and_metrics_are_told_while_a_module_is_compiled() {
    compiler_is_there();
    let node = Node::new();
    let (pipe, script) = (node.path("pipe"), node.path("compiler"));
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let real = Path::new(env!("CARGO_BIN_EXE_aether-agent")).with_file_name("aether-modc");
    let text = format!("#!/bin/sh\nread -r _ < {}\nexec {} \"$@\"\n", pipe.display(), real.display());
    crate::support::script(&script, &text);
    put(&node, "team", POLICY, HOSTILE);
    let agent = node.start_with("a", &["--module-compiler", script.to_str().unwrap()]);
    let mut asked = admin(&agent).await;
    let waiting = |module: &aether_api::admin::Module| module.problem == "it is being compiled and tried";
    let team = asked.module("team", "waiting for its compiler", waiting).await;
    assert_eq!(team.state, "rejected");
    let text = scrape(&agent.admin_socket());
    assert!(text.contains("aether_module_problem{module=\"team\"} 1"), "{text}");
    agent.logged("serving on");
    let denied = plugin(&node).await.add("one").await.unwrap_err();
    assert!(denied.message().contains("it is being compiled and tried"), "{denied}");
    std::fs::write(&pipe, "go\n").unwrap();
    asked.module("team", "loaded", |module| module.loads == 1 && module.problem.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m09_a_file_that_others_may_write_is_not_taken() {
    let node = Node::new();
    put(&node, "team", POLICY, HOSTILE);
    let path = node.path("modules/team.wasm");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let agent = node.serving("a");
    let mut asked = admin(&agent).await;
    let team = asked.module("team", "refused", |module| module.problem.contains("0666")).await;
    assert!(team.problem.contains("chmod go-w"), "{team:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m11_metrics_and_the_admin_socket_tell_each_modules_state() {
    let node = Node::new();
    let (agent, mut calls, mut asked) = with_policy(&node, POLICY, HOSTILE).await;
    calls.add("one").await.unwrap();
    write(&node.path("modules/stray.wasm"), b"x");
    until("the stray file told", || {
        let text = scrape(&agent.admin_socket());
        if text.contains("aether_modules_directory_problems 1") { Ok(()) } else { Err(text) }
    });
    let text = scrape(&agent.admin_socket());
    for series in [
        "aether_module_state{module=\"team\",state=\"enabled\"} 1",
        "aether_module_state{module=\"conflist-reassert\",state=\"enabled\"} 1",
        "aether_module_info{module=\"taint-gate\",world=\"taint-gate\",source=\"builtin\"",
        "aether_module_calls_total{module=\"team\"} 1",
        "aether_module_problem{module=\"team\"} 0",
        "aether_condition{condition=\"cni-serving\"} 1",
    ] {
        assert!(text.contains(series), "{series} is not in\n{text}");
    }
    let all = asked.modules().await;
    assert!(all.problems.iter().any(|problem| problem.contains("stray.wasm")), "{all:?}");
    assert!(all.directory.ends_with("/modules"), "{all:?}");
    let team = asked.module("team", "called", |module| module.calls == 1).await;
    assert!(team.last_duration_ns > 0 && team.memory_peak > 0, "{team:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m01_t07_upstreams_that_nobody_used_are_forgotten_and_written_out_at_the_end() {
    let node = Node::new();
    let one = |name: &str, seen: u64| {
        format!(r#"{{"name":"{name}","port":80,"firstSeen":1,"lastSeen":{seen},"hits":3}}"#)
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    let text =
        format!(r#"{{"format":1,"oldestReader":1,"upstreams":[{},{}]}}"#, one("old", 2), one("new", now));
    std::fs::create_dir_all(node.state("")).unwrap();
    std::fs::write(node.state("upstreams.json"), text).unwrap();
    let mut agent = node.serving("a");
    let mut asked = admin(&agent).await;
    let forgot = |module: &aether_api::admin::Module| {
        module.actions.iter().any(|one| one.action == "forget-upstreams" && one.outcome == "done")
    };
    asked.module("upstream-flush", "forgetting", forgot).await;
    agent.signal(Signal::TERM);
    assert_eq!(agent.ended().code(), Some(0));
    let text = std::fs::read_to_string(node.state("upstreams.json")).unwrap();
    assert!(text.contains("\"new\"") && !text.contains("\"old\""), "{text}");
}
