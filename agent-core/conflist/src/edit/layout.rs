//! How an inserted object is laid out: like the last of the entries that are not ours.

use crate::json::{Document, Kind, Node};
use crate::load::List;

use super::gap;

/// Deeper than this an object is copied as it stands: its layout helps nobody.
const LAID_OUT_DEPTH: usize = 32;
/// A longer gap between two entries is not taken for a habit.
const GAP_MAX: usize = 256;

/// The habits of a list's owner.
pub(super) struct Layout {
    /// What stands between two entries, the comma included.
    separator: Vec<u8>,
    /// Between a key and its value.
    colon: Vec<u8>,
    /// Between two members on one line.
    comma: Vec<u8>,
    /// Inside the braces of an object on one line.
    padding: Vec<u8>,
    /// How an entry is broken into lines, if it is.
    lines: Option<Lines>,
}

struct Lines {
    /// The line's end.
    end: &'static [u8],
    /// The indentation of an entry.
    indent: Vec<u8>,
    /// What a level more is indented.
    step: Vec<u8>,
    /// Whether objects inside an entry are broken into lines too.
    nested: bool,
}

impl Layout {
    /// The habits seen in the entries with these indices, of which the last counts most.
    pub(super) fn of(list: &List, foreign: &[usize]) -> Self {
        let document = list.document();
        let (array, nodes) = list.array().unwrap_or((document.root(), &[]));
        let node = foreign.last().and_then(|index| nodes.get(*index)).copied().unwrap_or(array);
        let members = document.members(node);
        let start = document.span(node).start;
        let first = members.first().copied().unwrap_or((node, node));
        let opening = gap(document, start + 1, document.span(first.0).start);
        let colon = gap(document, document.span(first.0).end, document.span(first.1).start);
        let colon = if is_broken(colon) || colon.is_empty() { b": ".to_vec() } else { colon.to_vec() };
        let comma = match members.get(1) {
            Some((key, _)) => gap(document, document.span(first.1).end, document.span(*key).start),
            None => &[],
        };
        let comma = match comma {
            [] if colon.ends_with(b" ") => b", ".to_vec(),
            [] => b",".to_vec(),
            broken if is_broken(broken) && colon.ends_with(b" ") => b", ".to_vec(),
            broken if is_broken(broken) => b",".to_vec(),
            comma => comma.to_vec(),
        };
        let nested = first_nested(document, nodes, foreign);
        let lines = is_broken(opening).then(|| Lines {
            end: line_end(opening),
            indent: indent_of_line(document.bytes(), start),
            step: step(&indent_of_line(document.bytes(), start), after_last_line(opening)),
            nested: nested.is_none_or(|node| is_broken(document.raw(node))),
        });
        let padding = match (&lines, nested) {
            (None, _) => opening.to_vec(),
            (Some(_), Some(node)) => padding(document, node),
            (Some(_), None) => Vec::new(),
        };
        let separator = separator(document, array, nodes, &comma);
        Self { separator, colon, comma, padding, lines }
    }

    /// What goes before the object when it is put after the last entry.
    pub(super) fn separator(&self) -> Vec<u8> {
        self.separator.clone()
    }

    /// The object, laid out.
    pub(super) fn render(&self, entry: &Document) -> Vec<u8> {
        if entry.depth() > LAID_OUT_DEPTH {
            return entry.raw(entry.root()).to_vec();
        }
        let mut out = Vec::new();
        self.value(&mut out, entry, entry.root(), 0);
        out
    }

    fn value(&self, out: &mut Vec<u8>, entry: &Document, node: Node, level: usize) {
        let (open, close): (u8, u8) = match entry.kind(node) {
            Kind::Object => (b'{', b'}'),
            Kind::Array => (b'[', b']'),
            _ => return out.extend_from_slice(entry.raw(node)),
        };
        let (keys, values): (Vec<_>, Vec<_>) = match entry.kind(node) {
            Kind::Object => entry.members(node).into_iter().map(|(key, value)| (Some(key), value)).unzip(),
            _ => entry.items(node).into_iter().map(|item| (None, item)).unzip(),
        };
        let lines = self.lines.as_ref().filter(|lines| {
            let is_object = entry.kind(node) == Kind::Object;
            !values.is_empty() && is_object && (level == 0 || lines.nested)
        });
        out.push(open);
        for (index, (key, value)) in keys.into_iter().zip(values.iter()).enumerate() {
            match lines {
                Some(lines) => {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    lines.start(out, level + 1);
                }
                None if index > 0 => out.extend_from_slice(&self.comma),
                None if open == b'{' => out.extend_from_slice(&self.padding),
                None => {}
            }
            if let Some(key) = key {
                out.extend_from_slice(entry.raw(key));
                out.extend_from_slice(&self.colon);
            }
            self.value(out, entry, *value, level + 1);
        }
        match lines {
            Some(lines) => lines.start(out, level),
            None if open == b'{' && !values.is_empty() => out.extend_from_slice(&self.padding),
            None => {}
        }
        out.push(close);
    }
}

impl Lines {
    fn start(&self, out: &mut Vec<u8>, level: usize) {
        out.extend_from_slice(self.end);
        out.extend_from_slice(&self.indent);
        for _ in 0..level {
            out.extend_from_slice(&self.step);
        }
    }
}

/// As between the last two entries; where there is one, as before it.
fn separator(document: &Document, array: Node, nodes: &[Node], comma: &[u8]) -> Vec<u8> {
    if let [.., before, last] = nodes {
        let between = gap(document, document.span(*before).end, document.span(*last).start);
        if between.len() <= GAP_MAX {
            return between.to_vec();
        }
    }
    let first = nodes.first().map_or(0, |node| document.span(*node).start);
    let opening = gap(document, document.span(array).start + 1, first);
    if is_broken(opening) && opening.len() <= GAP_MAX {
        [b",", line_end(opening), after_last_line(opening)].concat()
    } else {
        comma.to_vec()
    }
}

/// The first object with members inside an entry that is not ours.
fn first_nested(document: &Document, nodes: &[Node], foreign: &[usize]) -> Option<Node> {
    foreign
        .iter()
        .rev()
        .filter_map(|index| nodes.get(*index))
        .flat_map(|node| document.members(*node))
        .map(|(_, value)| value)
        .find(|value| !document.members(*value).is_empty())
}

fn padding(document: &Document, object: Node) -> Vec<u8> {
    let first = document.members(object).first().map(|(key, _)| document.span(*key).start);
    let opening = gap(document, document.span(object).start + 1, first.unwrap_or_default());
    if is_broken(opening) { Vec::new() } else { opening.to_vec() }
}

fn is_broken(text: &[u8]) -> bool {
    text.contains(&b'\n')
}

fn line_end(text: &[u8]) -> &'static [u8] {
    if text.windows(2).any(|pair| pair == b"\r\n") { b"\r\n" } else { b"\n" }
}

fn after_last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

/// The white space that the line of `at` begins with.
fn indent_of_line(bytes: &[u8], at: usize) -> Vec<u8> {
    let line = after_last_line(bytes.get(..at).unwrap_or_default());
    line.iter().copied().take_while(|byte| matches!(byte, b' ' | b'\t')).collect()
}

/// What `inner` is indented more than `outer`.
fn step(outer: &[u8], inner: &[u8]) -> Vec<u8> {
    match inner.strip_prefix(outer) {
        Some(step) if !step.is_empty() => step.to_vec(),
        _ => b"  ".to_vec(),
    }
}
