//! One document or none, whatever happens (K01, K02, K14).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::agent::{Agent, Mood};
use common::{Place, Plugin, Stdin};
use proptest::prelude::*;
use serde_json::json;

/// Every command that needs its standard input; a DEL goes on without (K07).
const READERS: [&str; 5] = ["ADD", "CHECK", "GC", "STATUS", "VERSION"];

/// A pipe whose reader is gone.
fn broken() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    OwnedFd::from(writer).into()
}

/// bugs.md C12.
#[test]
fn k02_stdin_that_holds_no_configuration_is_one_error_of_code_6() {
    let truncated = br#"{"cniVersion":"0.3.1","name":"cbr0","prevResult":{"ips":[{"addr"#.to_vec();
    let huge = [b"{\"x\":\"".to_vec(), vec![b'x'; 10 * 1024 * 1024], b"\"}".to_vec()].concat();
    let spaces = vec![b' '; 5 * 1024 * 1024];
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("truncated", truncated),
        ("10 MB", huge),
        ("5 MB of spaces", spaces),
        ("not JSON", b"cniVersion: 0.3.1".to_vec()),
        ("no object", b"[1]".to_vec()),
        ("two documents", b"{}{}".to_vec()),
        ("no UTF-8", b"{\"name\":\"\xff\xfe\"}".to_vec()),
        ("a BOM", b"\xef\xbb\xbf{}".to_vec()),
    ] {
        for command in READERS {
            let ended = Plugin::new(command).stdin(bytes.clone()).run();
            let error = ended.error(6);
            assert_eq!(error["cniVersion"], "1.1.0", "{what}");
            assert!(
                error["details"].as_str().unwrap().contains("standard input"),
                "{what} {command}: {error}"
            );
        }
    }
}

#[test]
fn k02_stdin_that_never_ends_is_given_up_in_time() {
    let place = Place::new();
    let mut running = Vec::new();
    for command in READERS {
        for bytes in [Vec::new(), place.config(&json!({})).to_string().into_bytes()] {
            running.push((command, Plugin::new(command).stdin_of(Stdin::Open(bytes)).start()));
        }
    }
    for (command, running) in running {
        let ended = running.wait();
        ended.error(6);
        assert!(ended.took < Duration::from_secs(20), "{command}: {:?}", ended.took);
    }
    // One who writes for ever is cut off by size, one who writes slowly by time.
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    Plugin::new("ADD").stdin_of(Stdin::Of(zeros.into())).run().error(6);
}

#[test]
fn k02_stdin_that_cannot_be_read_is_code_5() {
    let directory = std::fs::File::open("/").unwrap();
    Plugin::new("ADD").stdin_of(Stdin::Of(directory.into())).run().error(5);
}

/// bugs.md C12: closed standard streams. The Rust runtime opens `/dev/null` in their place, so that no socket of ours
/// can be taken for one.
#[test]
fn k02_closed_descriptors_change_nothing_else() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    place.add(&json!({})).closing("<&-").run().error(6);
    place.add(&json!({})).closing("2>&-").run().document();
    let ended = place.add(&json!({})).closing(">&-").run();
    assert!(ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
    let ended = place.add(&json!({"agentSocket": 7})).closing(">&- 2>&-").run();
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(1), 0));
    place.del().closing("<&- >&- 2>&-").run().silent();
}

#[test]
fn k02_a_reader_that_is_gone_kills_nobody() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    // The result of an ADD has nobody to go to: that is an error, and no signal.
    let ended = place.add(&json!({})).stdout_of(broken()).run();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    assert_eq!(ended.logged("outcome"), "error-5");
    place.add(&json!({})).stderr_of(broken()).run().document();
    let ended = place.add(&json!({"agentSocket": 7})).stdout_of(broken()).stderr_of(broken()).run();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    place.del().stdout_of(broken()).stderr_of(broken()).run().silent();
    drop(agent);
    place.del().stdout_of(broken()).stderr_of(broken()).run().silent();
}

/// Whoever starts the plugin and reads neither of its pipes to the end gets his result all the same.
#[test]
fn k02_a_full_stderr_is_not_waited_for() {
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    rustix::io::write(&writer, &[b'x'; 4096]).unwrap();
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    let ended = place.add(&json!({})).stderr_of(OwnedFd::from(writer)).run();
    ended.document();
    assert!(ended.took < Duration::from_secs(10), "{:?}", ended.took);
    drop(reader);
}

/// A pipe that its owner made non-blocking takes a result larger than itself.
#[test]
fn k02_k03_a_large_result_passes_a_small_non_blocking_pipe() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let place = Place::new();
    place.uninstall();
    let prev = json!({"cniVersion": "0.3.1", "x": "y".repeat(1024 * 1024)});
    let running = place.add(&json!({"prevResult": prev})).stdout_of(OwnedFd::from(writer)).start();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).map(|_| bytes)
    });
    assert!(running.wait().status.success());
    let printed: serde_json::Value = serde_json::from_slice(&reading.join().unwrap().unwrap()).unwrap();
    assert_eq!(printed, prev);
}

/// bugs.md C13.
#[test]
fn k02_k14_logs_go_to_stderr_whatever_the_environment_says() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    let ended = place.add(&json!({})).env("RUST_LOG", "trace").env("RUST_BACKTRACE", "full").run();
    assert_eq!(ended.document(), json!({"cniVersion": "0.3.1", "dns": {}}));
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn k14_the_request_id_joins_the_plugins_line_with_the_agents() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let ended = place.add(&json!({})).run();
    let caller = agent.added().caller.unwrap();
    assert_eq!(ended.logged("request"), caller.request_id);
    assert_eq!(caller.request_id.len(), 16);
    for (name, value) in
        [("command", "ADD"), ("container", common::ID), ("ifname", "eth0"), ("pod", "prod/web-0")]
    {
        assert_eq!(ended.logged(name), value);
    }
    assert_eq!(ended.logged("agent"), place.socket().to_str().unwrap());
    assert_eq!(ended.logged("outcome"), "recorded");
    assert!(ended.logged("ms").parse::<u64>().is_ok());
    agent.be(Mood::Refusing(tonic::Code::Internal));
    let ended = place.add(&json!({})).run();
    let details = ended.error(100)["details"].as_str().unwrap().to_owned();
    assert!(details.contains(&format!("(request {})", ended.logged("request"))), "{details}");
}

#[test]
fn k14_an_entry_can_ask_for_silence_about_what_went_well() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    assert_eq!(place.add(&json!({"logLevel": "error"})).run().stderr, "");
    let ended = place.add(&json!({"logLevel": "error", "prevResult": null})).run();
    assert_eq!(ended.logged("outcome"), "error-7");
}

#[test]
fn k02_run_by_hand_it_explains_itself() {
    for plugin in [Plugin::by_hand(), Plugin::new("ADD").env("CNI_COMMAND", "")] {
        let ended = plugin.stdin_of(Stdin::Open(Vec::new())).run();
        ended.error(4);
        for word in ["CNI plugin", "aether-cni-install", "CNI_COMMAND=VERSION", "0.1.0", "1.1.0"] {
            assert!(ended.stderr.contains(word), "{word}: {}", ended.stderr);
        }
    }
}

#[test]
fn k01_unusable_variables_are_code_4_and_named() {
    for (plugin, named) in [
        (Plugin::new("ADD").env("CNI_COMMAND", "add"), "CNI_COMMAND"),
        (Plugin::new("ADD").without("CNI_CONTAINERID"), "CNI_CONTAINERID"),
        (Plugin::new("ADD").env("CNI_CONTAINERID", "../x"), "CNI_CONTAINERID"),
        (Plugin::new("ADD").env("CNI_NETNS", ""), "CNI_NETNS"),
        (Plugin::new("ADD").env("CNI_IFNAME", "a/b"), "CNI_IFNAME"),
        (Plugin::new("CHECK").env("CNI_IFNAME", "1234567890123456"), "CNI_IFNAME"),
        (Plugin::new("DEL").without("CNI_IFNAME"), "CNI_IFNAME"),
    ] {
        let error = plugin.stdin(r#"{"name":"n","cniVersion":"0.4.0","prevResult":{}}"#).run().error(4);
        assert!(error["details"].as_str().unwrap().contains(named), "{error}");
    }
}

#[test]
fn k01_every_version_is_served_and_a_newer_one_is_told_which() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Serving);
    for version in ["", "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let shown = if version.is_empty() { "0.1.0" } else { version };
        place.add(&json!({"cniVersion": version})).run().document();
        assert_eq!(
            place.add(&json!({"cniVersion": version, "prevResult": null})).run().error(7)["cniVersion"],
            shown
        );
        let versions =
            Plugin::new("VERSION").stdin(json!({"cniVersion": version}).to_string()).run().document();
        assert_eq!(versions["cniVersion"], shown);
        assert_eq!(
            versions["supportedVersions"],
            json!(["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"])
        );
    }
    for command in ["ADD", "CHECK", "GC", "STATUS"] {
        let error = Plugin::new(command)
            .stdin(place.config(&json!({"cniVersion": "1.2.0"})).to_string())
            .run()
            .error(1);
        assert_eq!(error["cniVersion"], "1.1.0");
        assert!(
            error["details"].as_str().unwrap().contains("0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0")
        );
    }
    let versions = Plugin::new("VERSION").stdin(r#"{"cniVersion":"9.9.9"}"#).run().document();
    assert_eq!(versions["cniVersion"], "1.1.0");
}

#[test]
fn k02_a_wrong_key_of_ours_is_code_7_and_named() {
    let place = Place::new();
    for (key, value) in [
        ("agentSocket", json!("relative.sock")),
        ("stateDir", json!(["/x"])),
        ("addDeadlineSeconds", json!("5")),
        ("addDeadlineSeconds", json!(-1)),
        ("ignoredNamespaces", json!("kube-system")),
        ("releaseNamespace", json!(true)),
        ("managed", json!("never")),
        ("name", json!(7)),
        ("cniVersion", json!(1)),
    ] {
        let error = place.add(&json!({key: value})).run().error(7);
        assert!(error["details"].as_str().unwrap().contains(key), "{key}: {error}");
    }
}

#[test]
fn k01_a_version_call_with_the_dummies_of_podman_is_served() {
    let plugin =
        ["CNI_CONTAINERID", "CNI_ARGS"].into_iter().fold(Plugin::new("VERSION"), |it, name| it.env(name, ""));
    let plugin =
        ["CNI_NETNS", "CNI_IFNAME", "CNI_PATH"].into_iter().fold(plugin, |it, name| it.env(name, "dummy"));
    plugin.stdin(r#"{"cniVersion":"0.4.0"}"#).run().document();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn k02_arbitrary_bytes_give_one_document_or_success(
        command in prop_oneof![Just("ADD"), Just("DEL"), Just("CHECK"), Just("GC"), Just("STATUS"), Just("VERSION"), Just("X")],
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            r#"\{"name":"n"(,"(cniVersion|prevResult|runtimeConfig|managed|cni\.dev/attachments)":(\{"ips":7\}|\[\]|-1e9|"x"|null)){0,4}\}"#
                .prop_map(String::into_bytes),
        ],
        values in proptest::collection::vec(proptest::collection::vec(1u8.., 0..40), 4),
    ) {
        use std::os::unix::ffi::OsStrExt as _;
        let place = Place::new();
        // No agent: its default places are not looked at either.
        let mut config = br#"{"addDeadlineSeconds":0,"agentSocket":""#.to_vec();
        config.extend(place.socket().as_os_str().as_bytes());
        config.extend(br#"","stateDir":""#);
        config.extend(place.state().as_os_str().as_bytes());
        config.push(b'"');
        let stdin = match bytes.strip_prefix(b"{") {
            Some(rest) => [config.as_slice(), b",", rest].concat(),
            None => bytes,
        };
        let names = ["CNI_CONTAINERID", "CNI_IFNAME", "CNI_NETNS", "CNI_ARGS"];
        let plugin = names.iter().zip(&values).fold(Plugin::new(command), |plugin, (name, value)| {
            // Half of them stay usable.
            if value.len() % 2 == 0 { plugin } else { plugin.env(name, std::ffi::OsStr::from_bytes(value)) }
        });
        let started = Instant::now();
        let ended = plugin.stdin(stdin).run();
        prop_assert!(started.elapsed() < Duration::from_secs(30));
        match ended.status.code() {
            Some(0) if ended.stdout.is_empty() => prop_assert!(!["ADD", "VERSION"].contains(&command)),
            Some(0) => { ended.document(); }
            _ => { ended.any_error(); }
        }
    }
}
