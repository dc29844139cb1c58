//! One log line a call, with the plugin's request id (K14).

use std::io::Write;
use std::sync::{Arc, Mutex};

use aether_api::cni;
use serde_json::Value;

use crate::support::{Running, Scripted, add_request, attachment, caller, del_request};

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

fn named(started: u64) -> cni::Caller {
    cni::Caller { request_id: format!("k14-{started}"), ..caller(started) }
}

// The subscriber is the whole process's, which other tests log to as well: one of a thread alone may miss a line whose
// place in the code another thread was the first to pass. Ours are known by their request ids.
#[tokio::test]
async fn k14_each_call_has_a_log_line_with_the_plugins_request_id() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(move || writer.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
    let service = Scripted::open();
    let running = Running::start(&service);
    let mut client = running.client().await;
    client.add(cni::AddRequest { caller: Some(named(10)), ..add_request("a", "web", 10) }).await.unwrap();
    client.add(cni::AddRequest { caller: Some(named(9)), ..add_request("b", "web", 9) }).await.unwrap_err();
    client.del(cni::DelRequest { caller: Some(named(11)), ..del_request("a", 11) }).await.unwrap();
    let attachment = Some(attachment("a"));
    client
        .check(cni::CheckRequest { caller: Some(named(12)), attachment, ..Default::default() })
        .await
        .unwrap();
    let network = "net".to_owned();
    client.gc(cni::GcRequest { caller: Some(named(13)), network, valid: vec![] }).await.unwrap();
    client.status(cni::StatusRequest { caller: Some(named(14)) }).await.unwrap();

    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let calls: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| line["fields"].clone())
        .filter(|fields| fields["request_id"].as_str().is_some_and(|id| id.starts_with("k14-")))
        .collect();
    let expected = [
        ("k14-10", "ADD", "a/eth0", "default/web", "recorded"),
        ("k14-9", "ADD", "b/eth0", "default/web", "FAILED_PRECONDITION"),
        ("k14-11", "DEL", "a/eth0", "", "removed"),
        ("k14-12", "CHECK", "a/eth0", "", "no record"),
        ("k14-13", "GC", "", "", "nothing to remove"),
        ("k14-14", "STATUS", "", "", "serving"),
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
