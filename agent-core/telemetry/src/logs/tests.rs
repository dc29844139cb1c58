use std::io::Write;
use std::sync::{Arc, Mutex};

use super::*;

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

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn o01_a_line_is_one_json_object_with_its_fields() {
    let lines = Lines::default();
    let sink = lines.clone();
    let (subscriber, _level) = build(Format::Json, "info", move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(request_id = "r-1", "two\nlines");
    });
    let text = lines.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in [r#""level":"INFO""#, r#""request_id":"r-1""#, r#""message":"two\nlines""#, r#""timestamp":"#]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn o01_the_level_changes_while_the_process_runs() {
    let lines = Lines::default();
    let sink = lines.clone();
    let (subscriber, level) = build(Format::Plain, "info", move || sink.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::debug!("before");
        level.change("debug").unwrap();
        tracing::debug!("after");
        assert_eq!(level.current(), "debug");
        level.change("nonsense=nonsense").unwrap_err();
        tracing::debug!("still");
        tracing::debug!(target: "h2::codec", "a frame");
        level.change("debug,h2=debug").unwrap();
        tracing::debug!(target: "h2::codec", "a wanted frame");
    });
    let text = lines.text();
    assert!(!text.contains("a frame") && text.contains("a wanted frame"), "{text}");
    assert!(!text.contains("before") && text.contains("after") && text.contains("still"), "{text}");
}

#[test]
fn o03_an_unknown_format_or_level_names_what_is_allowed() {
    let text = "xml".parse::<Format>().unwrap_err().to_string();
    assert!(text.contains("json or plain"), "{text}");
    let text = filter("loud=quiet").unwrap_err().to_string();
    assert!(text.contains("loud=quiet") && text.contains("debug"), "{text}");
}
