//! A value in one spelling.

use std::io::Write as _;

use super::{Document, Kind, Node};

enum Step {
    Value(Node),
    Key(String),
    Byte(u8),
}

pub(super) fn write(document: &Document, node: Node) -> Vec<u8> {
    let mut out = Vec::new();
    // What is still to be written, the next one last.
    let mut steps = vec![Step::Value(node)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Byte(byte) => out.push(byte),
            Step::Key(key) => {
                string(&mut out, &key);
                out.push(b':');
            }
            Step::Value(node) => match document.kind(node) {
                Kind::Null => out.extend_from_slice(b"null"),
                Kind::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
                Kind::Number => number(&mut out, document, node),
                Kind::String => string(&mut out, &document.text(node)),
                Kind::Array => {
                    out.push(b'[');
                    steps.push(Step::Byte(b']'));
                    for (index, item) in document.items(node).into_iter().enumerate().rev() {
                        steps.push(Step::Value(item));
                        if index > 0 {
                            steps.push(Step::Byte(b','));
                        }
                    }
                }
                Kind::Object => {
                    out.push(b'{');
                    steps.push(Step::Byte(b'}'));
                    for (index, (key, value)) in
                        document.map(node).into_iter().enumerate().rev().collect::<Vec<_>>()
                    {
                        steps.push(Step::Value(value));
                        steps.push(Step::Key(key));
                        if index > 0 {
                            steps.push(Step::Byte(b','));
                        }
                    }
                }
            },
        }
    }
    out
}

/// The shortest text of the float64; minus zero is zero. A number out of Go's range, which no list holds, is
/// written as it stands.
fn number(out: &mut Vec<u8>, document: &Document, node: Node) {
    match document.number(node) {
        Some(value) => {
            let _ = write!(out, "{:e}", value + 0.0);
        }
        None => out.extend_from_slice(document.raw(node)),
    }
}

pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1F => {
                let _ = write!(out, "\\u{byte:04x}");
            }
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
