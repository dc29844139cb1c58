//! The program against an agent that answers what the test wants.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its body does")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use aether_api::admin::admin_server::{Admin, AdminServer};
use aether_api::admin::{
    ChainRequest, ChainResponse, ConditionsRequest, ConditionsResponse, Event, EventsRequest, EventsResponse,
    LogLevelRequest, LogLevelResponse, Module, ModulesRequest, ModulesResponse, PodsRequest, PodsResponse,
    TakeoverRequest, TakeoverResponse,
};
use serde_json::Value;
use tokio::net::UnixListener;
use tonic::{Request, Response, Status};

/// Answers with this chain state; knows no log levels, as an older agent.
struct Scripted {
    state: &'static str,
}

#[tonic::async_trait]
impl Admin for Scripted {
    async fn pods(&self, _: Request<PodsRequest>) -> Result<Response<PodsResponse>, Status> {
        let record = r#"{"container":"abc","interface":"eth0","pod":{"namespace":"prod","name":"web-0"}}"#;
        let answer =
            PodsResponse { records: vec![record.to_owned()], role: "owner".to_owned(), unusable: Vec::new() };
        Ok(Response::new(answer))
    }

    async fn chain(&self, _: Request<ChainRequest>) -> Result<Response<ChainResponse>, Status> {
        if self.state == "broken" {
            return Err(Status::internal("the disk is on fire"));
        }
        Ok(Response::new(ChainResponse { state: self.state.to_owned(), ..ChainResponse::default() }))
    }

    async fn log_level(&self, _: Request<LogLevelRequest>) -> Result<Response<LogLevelResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn modules(&self, _: Request<ModulesRequest>) -> Result<Response<ModulesResponse>, Status> {
        let module =
            Module { name: "team".to_owned(), state: "enabled".to_owned(), calls: 7, ..Module::default() };
        let (role, directory) = ("owner".to_owned(), "/etc/aether/modules".to_owned());
        Ok(Response::new(ModulesResponse { modules: vec![module], role, directory, problems: Vec::new() }))
    }

    async fn events(&self, _: Request<EventsRequest>) -> Result<Response<EventsResponse>, Status> {
        let fight = Event { reason: "ConflistFight".to_owned(), count: 2, ..Event::default() };
        Ok(Response::new(EventsResponse { events: vec![fight] }))
    }

    async fn takeover(&self, _: Request<TakeoverRequest>) -> Result<Response<TakeoverResponse>, Status> {
        Ok(Response::new(TakeoverResponse {
            name: "web-b".to_owned(),
            locked: true,
            ..TakeoverResponse::default()
        }))
    }

    async fn conditions(
        &self,
        _: Request<ConditionsRequest>,
    ) -> Result<Response<ConditionsResponse>, Status> {
        let ready = self.state == "chained";
        let reason = if ready { String::new() } else { "the chain is stripped".to_owned() };
        Ok(Response::new(ConditionsResponse { ready, reason, conditions: Vec::new() }))
    }
}

/// An agent that ends with the test.
struct Agent {
    dir: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Agent {
    fn start(state: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let listener = runtime.block_on(async { UnixListener::bind(dir.path().join("admin.sock")) }).unwrap();
        let incoming = async_stream::stream! {
            loop {
                yield listener.accept().await.map(|(stream, _)| stream);
            }
        };
        let server = tonic::transport::Server::builder().add_service(AdminServer::new(Scripted { state }));
        runtime.spawn(server.serve_with_incoming(incoming));
        Self { dir, _runtime: runtime }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("admin.sock")
    }
}

fn aetherctl(socket: &Path, arguments: &[&str]) -> Output {
    // By the environment here, as a pod's image would have it.
    let mut command = Command::new(env!("CARGO_BIN_EXE_aetherctl"));
    command.env("AETHER_ADMIN_SOCKET", socket).args(arguments).output().unwrap()
}

#[test]
fn c01_the_exit_code_of_chain_says_whether_the_node_is_chained() {
    for (state, code) in [
        ("chained", 0),
        ("stripped", 3),
        ("drifted", 3),
        ("no-list", 3),
        ("invalid", 3),
        ("uninstalled", 3),
        ("unknown", 3),
        ("a state of a later release", 3),
    ] {
        let agent = Agent::start(state);
        let output = aetherctl(&agent.socket(), &["chain"]);
        assert_eq!(output.status.code(), Some(code), "{state}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("state       {state}")));
        let output = aetherctl(&agent.socket(), &["chain", "-o", "json"]);
        assert_eq!(output.status.code(), Some(code), "{state}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["state"], state);
    }
}

#[test]
fn pods_are_printed_as_a_table_and_as_json() {
    let agent = Agent::start("chained");
    let output = aetherctl(&agent.socket(), &["pods"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("prod       web-0  eth0"), "{output:?}");
    let output = aetherctl(&agent.socket(), &["-o", "json", "pods"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["role"], &json["records"][0]["container"]), (&"owner".into(), &"abc".into()));
}

#[test]
fn m11_modules_and_c06_events_are_printed_as_a_table_and_as_json() {
    let agent = Agent::start("chained");
    for (question, table, key, value) in [
        ("modules", "team    -      enabled", "/modules/0/calls", Value::from(7)),
        ("events", "ConflistFight", "/events/0/count", Value::from(2)),
    ] {
        let output = aetherctl(&agent.socket(), &[question]);
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains(table), "{output:?}");
        let output = aetherctl(&agent.socket(), &["-o", "json", question]);
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json.pointer(key), Some(&value), "{json}");
    }
}

#[test]
fn c08_the_exit_code_of_conditions_says_whether_the_agent_is_ready() {
    for (state, code, said) in
        [("chained", 0, "\nready"), ("stripped", 4, "not ready: the chain is stripped")]
    {
        let output = aetherctl(&Agent::start(state).socket(), &["conditions"]);
        assert_eq!(output.status.code(), Some(code), "{state}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(said), "{output:?}");
    }
}

#[test]
fn o03_a_refusal_and_an_older_agent_are_told_apart() {
    let agent = Agent::start("broken");
    let output = aetherctl(&agent.socket(), &["chain"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("would not tell the chain's state: the disk is on fire"), "{text}");
    let output = aetherctl(&agent.socket(), &["log-level", "debug"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("older than this aetherctl and cannot change its log level"), "{text}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let agent = Agent::start("chained");
    let mut command = Command::new(env!("CARGO_BIN_EXE_aetherctl"));
    command.arg("--admin-socket").arg(agent.socket()).arg("pods");
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn t05_the_last_takeover_is_asked_for_as_a_table_and_as_json() {
    let agent = Agent::start("chained");
    let text = String::from_utf8(aetherctl(&agent.socket(), &["takeover"]).stdout).unwrap();
    assert!(text.contains("web-b") && text.contains("free at its start"), "{text}");
    let output = aetherctl(&agent.socket(), &["takeover", "-o", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((json["name"].as_str(), json["taken"]["tombstones"].as_u64()), (Some("web-b"), Some(0)));
}
