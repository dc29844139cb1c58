//! One log line a call, with the plugin's request id (K14).

use std::io::Write;
use std::sync::{Arc, Mutex};

use aether_api::cni;
use serde_json::Value;

use crate::support::{Running, Scripted, add_request, caller, del_request};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// On one thread, whose subscriber is the test's.
#[tokio::test]
async fn k14_each_call_has_a_log_line_with_the_plugins_request_id() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    client.add(add_request("a", "web", 10)).await.unwrap();
    client.add(add_request("b", "web", 9)).await.unwrap_err();
    client.del(del_request("a", 11)).await.unwrap();
    let check = cni::CheckRequest {
        caller: Some(caller(12)),
        attachment: Some(crate::support::attachment("a")),
        ..Default::default()
    };
    client.check(check).await.unwrap();
    client
        .gc(cni::GcRequest { caller: Some(caller(13)), network: "net".to_owned(), valid: vec![] })
        .await
        .unwrap();
    client.status(cni::StatusRequest { caller: Some(caller(14)) }).await.unwrap();

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let calls: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["target"].as_str().unwrap().starts_with("aether_cni_server"))
        .map(|line| line["fields"].clone())
        .collect();
    let expected = [
        ("req-10", "ADD", "a/eth0", "default/web", "recorded"),
        ("req-9", "ADD", "b/eth0", "default/web", "FAILED_PRECONDITION"),
        ("req-11", "DEL", "a/eth0", "", "removed"),
        ("req-12", "CHECK", "a/eth0", "", "no record"),
        ("req-13", "GC", "", "", "nothing to remove"),
        ("req-14", "STATUS", "", "", "serving"),
    ];
    assert_eq!(calls.len(), expected.len(), "{text}");
    for (call, (request_id, command, key, pod, outcome)) in calls.iter().zip(expected) {
        assert_eq!(call["request_id"], request_id, "{call}");
        assert_eq!(call["command"], command, "{call}");
        assert_eq!(call["outcome"], outcome, "{call}");
        assert!(call["ms"].as_f64().unwrap() >= 0.0, "{call}");
        if command != "STATUS" {
            assert_eq!((call["key"].as_str().unwrap(), call["pod"].as_str().unwrap()), (key, pod), "{call}");
        }
    }
    assert!(calls[1]["error"].as_str().unwrap().contains("a/eth0"), "the reason is said: {}", calls[1]);
}
