//! What is reachable, and by whom: O04; and what may be in a socket's place.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::calls::{plugin, readiness};
use crate::support::Node;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o04_directories_sockets_and_records_have_their_modes_whoever_made_them() {
    let node = Node::new();
    // A kubelet's hostPath, and its emptyDir.
    for (below, bits) in [("run", 0o755), ("state", 0o755), ("a", 0o777)] {
        std::fs::create_dir(node.path(below)).unwrap();
        std::fs::set_permissions(node.path(below), PermissionsExt::from_mode(bits)).unwrap();
    }
    let agent = node.serving("a");
    plugin(&node).await.add("one").await.unwrap();
    assert_eq!(mode(&node.path("run")), 0o711);
    assert_eq!(mode(&node.run("cni.sock")), 0o600);
    assert_eq!(mode(&node.run("agent.lock")), 0o600);
    assert_eq!(mode(&node.path("state")), 0o700);
    assert_eq!(mode(&node.state("pods")), 0o700);
    assert_eq!(mode(&node.state("deletes")), 0o700);
    for record in std::fs::read_dir(node.state("pods")).unwrap() {
        assert_eq!(mode(&record.unwrap().path()), 0o600);
    }
    assert_eq!(mode(&agent.admin_socket()), 0o600);
    assert_eq!(mode(&node.path("a")), 0o700);
    agent.stop();
}

#[test]
fn o04_a_directory_of_somebody_else_is_not_taken_for_the_agents_own() {
    let node = Node::new();
    std::fs::create_dir(node.path("a")).unwrap();
    std::os::unix::fs::chown(node.path("a"), Some(65534), None).unwrap();
    let mut agent = node.start("a");
    assert_eq!(agent.ended().code(), Some(1));
    let said = agent.logged("belongs to uid 65534");
    assert!(said.contains("--local-dir"), "{said}");
    assert!(!node.path("a/admin.sock").exists());
}

#[test]
fn o04_a_caller_that_is_not_root_is_turned_away_even_where_the_mode_would_let_it() {
    use std::io::{Read as _, Write as _};
    let node = Node::new();
    let agent = node.serving("a");
    let sockets = [node.run("cni.sock"), agent.admin_socket()];
    for directory in [node.path(""), node.path("a")] {
        std::fs::set_permissions(directory, PermissionsExt::from_mode(0o755)).unwrap();
    }
    for socket in &sockets {
        std::fs::set_permissions(socket, PermissionsExt::from_mode(0o666)).unwrap();
    }
    // Only this thread becomes somebody else.
    let tried = std::thread::spawn(move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
        sockets.map(|socket| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            answer
        })
    });
    assert_eq!(tried.join().unwrap(), [Vec::<u8>::new(), Vec::new()], "nobody but root is answered");
    agent.logged("turned away a caller on the admin socket");
    agent.logged("refused a connection to the CNI socket");
}

#[test]
fn t08_what_is_in_the_sockets_place_is_named_and_a_dead_socket_is_replaced() {
    let node = Node::new();
    std::fs::create_dir_all(node.run("cni.sock")).unwrap();
    let agent = node.start("a");
    let line = agent.logged("a socket of the node is not served");
    assert!(line.contains("a directory is in the way") && line.contains("cni.sock"), "{line}");
    assert!(readiness(&agent).1.contains("cni-socket"), "{:?}", readiness(&agent));
    std::fs::remove_dir(node.run("cni.sock")).unwrap();
    // It tries again by itself.
    agent.logged("serving on the CNI socket");
    agent.stop();
    std::fs::remove_file(node.run("cni.sock")).unwrap();
    drop(std::os::unix::net::UnixListener::bind(node.run("cni.sock")).unwrap());
    node.serving("a").stop();
}

#[test]
fn o03_a_start_that_cannot_be_names_the_flag() {
    let node = Node::new();
    std::fs::write(node.path("run"), "a file").unwrap();
    let mut agent = node.start("a");
    assert_eq!(agent.ended().code(), Some(1));
    let line = agent.logged("cannot start:");
    assert!(line.contains("--run-dir") && line.contains("Not a directory"), "{line}");
    let mut agent = node.start_with("a", &["--log-level", "loud=quiet"]);
    assert_eq!(agent.ended().code(), Some(1));
    assert!(agent.logged("loud=quiet").contains("debug"));
}
