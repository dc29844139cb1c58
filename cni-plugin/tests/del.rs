//! DEL: never in the way of a pod's end, and nothing lost (K07; bugs.md G).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper fails its test by panicking"
)]

mod common;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use aether_domain::format::{Parsed, parse};
use aether_domain::tombstone::{READER, Tombstone};
use aether_domain::{key::Key, limits};
use common::agent::{Agent, Asked, Mood};
use common::raw::{GOAWAY, RESET, Raw, SETTINGS};
use common::{Ended, ID, Place, Plugin, Stdin, eventually};
use serde_json::json;
use tonic::Code;

/// Ten times the second within which a DEL ends.
const BOUND: Duration = Duration::from_secs(10);

/// The tombstone at `path`, read as its owner will.
#[track_caller]
fn tombstone(path: &std::path::Path) -> Tombstone {
    match parse(&std::fs::read(path).unwrap(), READER) {
        Parsed::Good(tombstone) => tombstone,
        other => panic!("{}: {other:?}", path.display()),
    }
}

#[track_caller]
fn quick(ended: Ended) -> Ended {
    assert!(ended.took < BOUND, "{:?}", ended.took);
    ended.silent()
}

#[test]
fn k07_a_del_tells_the_agent() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let ended = place.del().run().silent();
    assert_eq!(ended.logged("outcome"), "deleted");
    let asked = agent.asked();
    let [Asked::Del(request)] = asked.as_slice() else { panic!("{asked:?}") };
    let attachment = request.attachment.clone().unwrap();
    assert_eq!((attachment.container_id.as_str(), attachment.interface.as_str()), (ID, "eth0"));
    assert_eq!(request.network, "cbr0");
    assert!(!place.state().exists(), "nothing was written");
}

/// bugs.md G1.
#[test]
fn k07_g1_with_the_agent_away_a_tombstone_is_left_and_del_succeeds() {
    let place = Place::new();
    place.record(ID);
    let before = aether_durable::boot::now().unwrap();
    let ended = quick(place.del().run());
    let after = aether_durable::boot::now().unwrap();
    assert_eq!(ended.logged("outcome"), "tombstone");
    let [path] = place.tombstones().try_into().unwrap();
    let written = tombstone(&path);
    assert_eq!(path.file_name().unwrap().to_str().unwrap(), written.file_name());
    assert_eq!(written.key, Key::new(ID.parse().unwrap(), "eth0".parse().unwrap()));
    assert_eq!(written.network.unwrap().as_str(), "cbr0");
    assert_eq!(written.started.boot, before.boot);
    assert!(before.nanos < written.started.nanos && written.started.nanos < after.nanos);
    assert_eq!(written.request_id.as_str(), ended.logged("request"));
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(std::fs::metadata(place.deletes()).unwrap().mode() & 0o7777, 0o700);
}

/// The first DEL of a node whose agent never ran makes both directories, for root alone.
#[test]
fn k07_missing_directories_are_made() {
    let place = Place::new();
    let _agent = Agent::start(&place.socket(), Mood::Refusing(Code::Unavailable));
    quick(place.del().run());
    assert_eq!(place.tombstones().len(), 1);
    for directory in [place.state(), place.deletes()] {
        assert_eq!(std::fs::metadata(directory).unwrap().mode() & 0o7777, 0o700);
    }
}

/// A pod whose ADD failed because nobody listened came never to be.
#[test]
fn k07_where_nobody_listens_and_no_record_stands_nothing_is_left() {
    let place = Place::new();
    place.record("another");
    let at = |name: &str| place.dir.path().join(name);
    std::fs::create_dir(at("directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(at("stale")).unwrap());
    for socket in ["cni.sock", "directory", "dangling", "stale", "missing/parent"] {
        let config = place.config(&json!({"agentSocket": at(socket)})).to_string();
        let ended = quick(Plugin::new("DEL").stdin(config.clone()).run());
        assert_eq!(ended.logged("outcome"), "nothing-to-delete", "{socket}");
        assert!(place.tombstones().is_empty());
        let ended = quick(Plugin::new("DEL").env("CNI_CONTAINERID", "another").stdin(config).run());
        assert_eq!(ended.logged("outcome"), "tombstone", "{socket}");
        std::fs::remove_file(&place.tombstones()[0]).unwrap();
    }
}

/// bugs.md G2: the agent dies between hearing and answering. It may have been writing the record.
#[test]
fn k07_g2_whoever_listened_and_did_not_answer_is_left_a_tombstone() {
    for answer in [Vec::new(), SETTINGS.to_vec(), [SETTINGS, GOAWAY].concat(), [SETTINGS, RESET].concat()] {
        let place = Place::new();
        let _raw = Raw::start(&place.socket(), answer);
        let ended = quick(place.del().run());
        assert_eq!(ended.logged("outcome"), "tombstone");
        assert_eq!(place.tombstones().len(), 1);
    }
}

#[test]
fn k07_an_agent_killed_in_the_middle_of_a_del_is_left_a_tombstone() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Silent);
    let running = place.del().start();
    eventually("it was asked", || !agent.asked().is_empty());
    drop(agent);
    assert_eq!(quick(running.wait()).logged("outcome"), "tombstone");
}

#[test]
fn k07_a_time_out_always_leaves_one() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Silent);
    let ended = quick(place.del().run());
    assert!(ended.took >= Duration::from_millis(700), "{:?}", ended.took);
    assert_eq!(ended.logged("outcome"), "tombstone");
    drop(agent);
    // Here nobody accepts: whoever holds the socket is stopped.
    std::fs::remove_file(place.socket()).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(place.socket()).unwrap();
    quick(place.del().run());
    assert_eq!(place.tombstones().len(), 2);
}

#[test]
fn k07_every_refusal_of_an_agent_is_a_success_with_a_tombstone() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let codes = [
        Code::Unavailable,
        Code::ResourceExhausted,
        Code::Internal,
        Code::InvalidArgument,
        Code::NotFound,
        Code::Unimplemented,
    ];
    for (n, code) in codes.into_iter().enumerate() {
        agent.be(Mood::Refusing(code));
        quick(place.del().run());
        assert_eq!(place.tombstones().len(), n + 1, "{code:?}");
    }
}

/// bugs.md G4: after a reboot the namespace is gone, and the variable is empty, missing or names something else.
#[test]
fn k07_g4_the_namespace_plays_no_part() {
    let place = Place::new();
    let file = place.dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    place.del().without("CNI_NETNS").run().silent();
    for netns in ["", "/no/such/netns", file.to_str().unwrap()] {
        place.del().env("CNI_NETNS", netns).run().silent();
    }
    place.del().without("CNI_NETNS").without("CNI_ARGS").without("CNI_PATH").run().silent();
    assert_eq!(agent.asked().len(), 5);
    drop(agent);
    place.record(ID);
    place.del().env("CNI_NETNS", "").run().silent();
    assert_eq!(place.tombstones().len(), 1);
}

/// bugs.md G5.
#[test]
fn k07_g5_the_result_plays_no_part() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    for prev in
        [json!(null), json!({}), json!({"ip4": {"ip": "10.0.0.1/8"}}), json!("x"), json!([1]), json!(7)]
    {
        Plugin::new("DEL").stdin(place.config(&json!({"prevResult": prev})).to_string()).run().silent();
    }
    for version in [json!("9.9.9"), json!(""), json!(7)] {
        Plugin::new("DEL").stdin(place.config(&json!({"cniVersion": version})).to_string()).run().silent();
    }
    assert_eq!(agent.asked().len(), 9);
}

/// bugs.md G6, G7: unknown, repeated, after an ADD that failed.
#[test]
fn k07_g6_g7_a_del_can_be_repeated() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Refusing(Code::PermissionDenied));
    place.add(&json!({})).run().error(101);
    agent.be(Mood::Serving);
    for _ in 0..3 {
        place.del().run().silent();
    }
    assert_eq!(agent.asked().len(), 4);
    // containerd deletes a pod at least twice; with the agent away each leaves its own moment.
    drop(agent);
    place.record(ID);
    for _ in 0..3 {
        place.del().run().silent();
    }
    let moments: Vec<u64> = place.tombstones().iter().map(|path| tombstone(path).started.nanos).collect();
    assert!(moments.len() == 3 && moments.is_sorted(), "{moments:?}");
}

#[test]
fn k07_unreadable_stdin_is_no_obstacle_and_the_default_places_count() {
    // With a record in the default place, and then without.
    let script = r#"mkdir -p /var/lib/aether/pods; : > "/var/lib/aether/pods/$CNI_CONTAINERID+eth0.json"; "$0"
        for one in /var/lib/aether/deletes/*; do test -s "$one"; done; rm -r /var/lib/aether; "$0" </dev/null; test ! -e /var/lib/aether"#;
    for stdin in [
        Stdin::Bytes(Vec::new()),
        Stdin::Bytes(b"{\"name\":".to_vec()),
        Stdin::Bytes(b"nonsense".to_vec()),
        Stdin::Bytes(vec![b'{'; 5 * 1024 * 1024]),
        Stdin::Open(Vec::new()),
        Stdin::Open(b"{\"agentSocket\":\"/".to_vec()),
        Stdin::Of(std::fs::File::open("/").unwrap().into()),
        Stdin::Of(std::fs::File::open("/dev/zero").unwrap().into()),
    ] {
        let ended = quick(Plugin::new("DEL").stdin_of(stdin).on_a_fresh_node(script).run());
        let outcomes: Vec<&str> =
            ended.stderr.lines().filter_map(|line| line.split("outcome=").nth(1)).collect();
        assert_eq!(ended.logged("agent"), "/run/aether/cni.sock");
        assert_eq!(outcomes.len(), 2, "{}", ended.stderr);
        assert!(
            outcomes[0].starts_with("tombstone ") && outcomes[1].starts_with("nothing-to-delete "),
            "{outcomes:?}"
        );
    }
}

/// A configuration that came whole counts, though the caller forgets to close it.
#[test]
fn k07_a_configuration_without_its_end_is_used() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let config = place.config(&json!({})).to_string();
    let ended = quick(Plugin::new("DEL").stdin_of(Stdin::Open(config.into_bytes())).run());
    assert_eq!(ended.logged("outcome"), "deleted");
    assert_eq!(agent.asked().len(), 1);
}

#[test]
fn k07_a_wrong_key_of_ours_keeps_its_default_and_the_others_count() {
    let place = Place::new();
    let agent = Agent::start(&place.socket(), Mood::Serving);
    let config = json!({"managed": 7, "ignoredNamespaces": {}, "addDeadlineSeconds": "x", "stateDir": 1});
    Plugin::new("DEL").stdin(place.config(&config).to_string()).run().silent();
    assert_eq!(agent.asked().len(), 1);
}

/// The only error of a DEL. containerd swallows one that holds "not found", and skips the rest of the chain.
#[test]
fn k07_only_an_unusable_key_is_an_error_and_never_not_found() {
    for (name, value) in [
        ("CNI_CONTAINERID", ""),
        ("CNI_CONTAINERID", "not found"),
        ("CNI_CONTAINERID", "../../etc"),
        ("CNI_IFNAME", ""),
        ("CNI_IFNAME", "not found"),
        ("CNI_IFNAME", "no such file or directory"),
    ] {
        let ended = Plugin::new("DEL").env(name, value).env("CNI_NETNS", "").stdin("{}").run();
        let error = ended.error(4).to_string();
        assert!(error.contains(name), "{error}");
        assert!(!error.contains("not found") && !error.contains("no such file or directory"), "{error}");
    }
}

#[test]
fn k07_ten_thousand_tombstones_are_the_bound() {
    let place = Place::new();
    place.record(ID);
    std::fs::create_dir_all(place.deletes()).unwrap();
    for n in 1..limits::TOMBSTONES_MAX {
        std::fs::write(place.deletes().join(format!("c{n}+eth0.{n:020}")), b"").unwrap();
    }
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "tombstone");
    assert_eq!(place.tombstones().len(), limits::TOMBSTONES_MAX);
    // And one more.
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "lost");
    assert!(ended.stderr.contains("10000 tombstones wait"), "{}", ended.stderr);
    assert_eq!(place.tombstones().len(), limits::TOMBSTONES_MAX);
}

/// A file system of the test's own at the state directory.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn tmpfs(path: &std::path::Path, options: &str) -> Self {
        std::fs::create_dir_all(path).unwrap();
        let options = std::ffi::CString::new(options).unwrap();
        rustix::mount::mount("tmpfs", path, "tmpfs", rustix::mount::MountFlags::empty(), options.as_c_str())
            .expect("cannot mount a tmpfs: run the tests as root");
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn k07_a_full_disk_is_said_and_del_succeeds() {
    let place = Place::new();
    let _mounted = Mounted::tmpfs(&place.state(), "size=16k,mode=700");
    place.record(ID);
    let _ = std::fs::write(place.state().join("filler"), vec![0u8; 64 * 1024]);
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "lost");
    assert!(ended.stderr.contains("No space left") && ended.stderr.contains("deletes"), "{}", ended.stderr);
    assert!(place.tombstones().is_empty(), "nothing half-written is left");
}

#[test]
fn k07_a_read_only_state_directory_is_said_and_del_succeeds() {
    let place = Place::new();
    let _mounted = Mounted::tmpfs(&place.state(), "size=64k,mode=700");
    place.record(ID);
    rustix::mount::mount_remount(place.state(), rustix::mount::MountFlags::RDONLY, c"").unwrap();
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "lost");
    assert!(ended.stderr.contains("Read-only file system"), "{}", ended.stderr);
}

#[test]
fn k07_a_file_in_the_place_of_a_directory_is_said_and_del_succeeds() {
    let place = Place::new();
    place.record(ID);
    std::fs::write(place.deletes(), b"").unwrap();
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "lost");
    assert!(ended.stderr.contains("deletes"), "{}", ended.stderr);
}

/// The disk's error, and the plugin's death, at each system call that a tombstone takes: what is left is whole or is no
/// tombstone, and DEL succeeds unless it was killed.
#[test]
fn k07_a_tombstone_is_whole_or_absent_at_every_fault() {
    let writing = ["mkdir", "openat", "write", "fchmod", "fsync", "rename", "renameat"];
    let mut killed = 0;
    for call in writing {
        for n in 1..20 {
            let place = Place::new();
            place.record(ID);
            let inject = format!("inject={call}:signal=KILL:when={n}");
            let ended = place.del().traced(&["-e", &format!("trace={call}"), "-e", &inject]).run();
            check(&place);
            if ended.status.success() {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 10, "strace killed nothing: is it installed, and ptrace allowed?");
    let mut failed = 0;
    for call in ["mkdir", "write", "fchmod", "fsync", "rename", "renameat"] {
        for n in 1..5 {
            let place = Place::new();
            place.record(ID);
            let inject = format!("inject={call}:error=ENOSPC:when={n}");
            let ended = quick(place.del().traced(&["-e", &format!("trace={call}"), "-e", &inject]).run());
            check(&place);
            // A write that failed may have been the log line's.
            failed += usize::from(ended.stderr.contains("outcome=lost"));
        }
    }
    assert!(failed >= 4, "{failed} faults were noticed");
}

/// A hundred deaths at whatever point they find it.
#[test]
fn k07_a_hundred_kills_leave_no_torn_tombstone() {
    let place = Place::new();
    place.record(ID);
    let usual = place.del().run().took;
    for n in 0..100 {
        let mut running = place.del().start();
        // pause: the moment of the kill is what varies
        std::thread::sleep(usual * n / 80);
        let _ = running.child.kill();
        running.wait();
        check(&place);
    }
    let ended = quick(place.del().run());
    assert_eq!(ended.logged("outcome"), "tombstone");
}

/// Every file of a tombstone's name is a whole one.
#[track_caller]
fn check(place: &Place) {
    for path in place.tombstones() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with(aether_domain::paths::TEMP_PREFIX) {
            assert_eq!(tombstone(&path).file_name(), name);
        }
    }
}

#[test]
fn k07_a_state_directory_that_others_may_not_enter_serves_root() {
    let place = Place::new();
    place.record(ID);
    std::fs::set_permissions(place.state(), std::fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(quick(place.del().run()).logged("outcome"), "tombstone");
}
