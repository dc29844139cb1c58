//! Metrics and logs: O01, K14.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::calls::{admin, plugin};
use crate::support::{Node, until};

fn get(mut stream: impl std::io::Read + std::io::Write, path: &str) -> std::io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// What the admin socket answers to `GET /metrics`.
pub(crate) fn scrape(socket: &Path) -> String {
    let text = until("an answer on the admin socket", || {
        UnixStream::connect(socket)
            .and_then(|stream| get(stream, "/metrics"))
            .map_err(|error| error.to_string())
    });
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    text
}

fn scrape_address(address: SocketAddr) -> Result<String, String> {
    let stream =
        TcpStream::connect_timeout(&address, Duration::from_secs(5)).map_err(|error| error.to_string())?;
    get(stream, "/metrics").map_err(|error| error.to_string())
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_metrics_are_answered_on_the_pod_local_socket_of_owner_and_standby() {
    let node = Node::new();
    let owner = node.serving("a");
    let standby = node.start("b");
    standby.logged("standing by");
    plugin(&node).await.add("one").await.unwrap();
    let text = scrape(&owner.admin_socket());
    for line in [
        "aether_agent_role{role=\"owner\"} 1",
        "aether_cni_serving 1",
        "aether_pod_records 1",
        "aether_cni_requests_total{command=\"ADD\",code=\"OK\"} 1",
        "aether_cni_request_duration_seconds_count{command=\"ADD\"} 1",
        "aether_chain_state{state=\"unknown\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.contains("content-type: application/openmetrics-text"), "{text}");
    let text = scrape(&standby.admin_socket());
    assert!(
        text.contains("aether_agent_role{role=\"standby\"} 1") && text.contains("aether_cni_serving 0"),
        "{text}"
    );
}

#[test]
fn o01_the_address_is_the_owners_alone_and_goes_over_with_the_node() {
    let node = Node::new();
    let address = free_address();
    let flags = ["--metrics-addr", &address.to_string()];
    let first = node.start_with("a", &flags);
    let bound = first.logged("metrics are answered");
    let serving = first.lines().iter().position(|line| line.contains("serving on")).unwrap();
    assert!(serving < first.lines().iter().position(|line| *line == bound).unwrap(), "bound after it serves");
    let second = node.start_with("b", &flags);
    second.logged("standing by");
    let text = scrape_address(address).unwrap();
    assert!(text.contains("aether_agent_role{role=\"owner\"} 1"), "{text}");
    assert!(
        !second.has_logged("metrics are answered") && !second.has_logged("cannot bind the metrics address")
    );
    first.stop();
    second.logged("metrics are answered");
    until("the second's metrics", || {
        let text = scrape_address(address)?;
        if text.contains("aether_metrics_address_served 1") { Ok(()) } else { Err(text) }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_a_taken_port_is_a_warning_and_is_tried_again() {
    let node = Node::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let agent = node.start_with("a", &["--metrics-addr", &address.to_string()]);
    let line = agent.logged("cannot bind the metrics address");
    assert!(
        line.contains("WARN") && line.contains(&address.to_string()) && line.contains("--metrics-addr"),
        "{line}"
    );
    plugin(&node).await.status().await.unwrap();
    assert!(scrape(&agent.admin_socket()).contains("aether_metrics_address_served 0"));
    drop(taken);
    agent.logged("metrics are answered");
    assert!(scrape_address(address).unwrap().contains("aether_metrics_address_served 1"));
}

#[test]
fn o01_o04_the_address_answers_nothing_else_and_idle_callers_do_not_fill_it() {
    let node = Node::new();
    let address = free_address();
    let agent = node.start_with("a", &["--metrics-addr", &address.to_string()]);
    agent.logged("metrics are answered");
    let other = get(TcpStream::connect(address).unwrap(), "/aether.admin.v1.Admin/Pods").unwrap();
    assert!(other.starts_with("HTTP/1.1 404"), "{other}");
    // Callers that say nothing, more than are let in at once; each is closed after a while, and a scrape gets its turn.
    let _idle: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).unwrap()).collect();
    let text = until("a scrape behind idle callers", || scrape_address(address));
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k14_a_calls_log_line_carries_the_plugins_request_id() {
    let node = Node::new();
    let agent = node.serving("a");
    let started = plugin(&node).await.add("one").await.unwrap();
    let line = agent.logged(&format!("test-{}", started.nanos));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((line["command"].as_str(), line["key"].as_str()), (Some("ADD"), Some("one/eth0")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_every_log_line_is_json_and_the_level_changes_at_run_time() {
    let node = Node::new();
    let agent = node.serving("a");
    let mut asked = admin(&agent).await;
    assert_eq!(asked.log_level("").await.unwrap(), "info");
    let mut calls = plugin(&node).await;
    calls.status().await.unwrap();
    assert!(!agent.has_logged("\"STATUS\""));
    assert_eq!(asked.log_level("debug").await.unwrap(), "debug");
    calls.status().await.unwrap();
    agent.logged("\"STATUS\"");
    let refused = asked.log_level("loud=quiet").await.unwrap_err();
    assert!(refused.message().contains("loud=quiet"), "{refused}");
    for line in agent.lines() {
        let parsed = serde_json::from_str::<serde_json::Value>(&line);
        assert!(
            parsed.is_ok_and(|line| line["level"].is_string() && line["timestamp"].is_string()),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_a_log_collector_that_went_away_takes_nobody_with_it() {
    let node = Node::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_aether-agent"));
    command.args(node.arguments("a")).args(["--log-level", "trace"]).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    let served = until("an agent that serves", || {
        UnixStream::connect(node.run("cni.sock")).map_err(|error| error.to_string())
    });
    drop(served);
    let added = plugin(&node).await.add("one").await;
    let running = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(added.is_ok() && running, "{added:?}");
}
