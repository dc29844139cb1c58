//! JSON as Go's `encoding/json` takes it, with the place of every value.
//!
//! What Go takes and stricter readers do not: bytes that are not UTF-8 and lone surrogates in strings (each replaced by
//! U+FFFD), keys that stand several times, nesting up to [`MAX_DEPTH`]. Nothing here recurses over the input, so that
//! nesting cannot exhaust the stack.

use std::collections::BTreeMap;
use std::ops::Range;

mod canonical;
mod number;
mod scan;
mod text;

/// The deepest nesting that Go takes.
pub const MAX_DEPTH: usize = 10_000;

/// A scanned text. It owns its bytes; a [`Node`] is a place in the document that it came from.
#[derive(Debug, Clone)]
pub struct Document {
    bytes: Vec<u8>,
    /// Every value and every key in the order of the text: a container stands before what it contains.
    slots: Vec<Slot>,
    depth: usize,
}

/// A value or a key in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(usize);

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl Kind {
    /// The kind with its article, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

#[derive(Debug, Clone)]
struct Slot {
    kind: Kind,
    start: usize,
    end: usize,
    /// The index of the first slot that is not part of this one.
    after: usize,
}

/// Why a text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (at byte {offset})")]
pub struct SyntaxError {
    /// The byte where it goes wrong, from 0; the text's length where the text ends too early.
    pub offset: usize,
    /// Why.
    pub reason: String,
}

impl Document {
    /// Scans a text. It is taken exactly when Go's `json.Valid` takes it.
    pub fn parse(text: &[u8]) -> Result<Self, SyntaxError> {
        let (slots, depth) = scan::scan(text)?;
        Ok(Self { bytes: text.to_vec(), slots, depth })
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The outermost value.
    pub fn root(&self) -> Node {
        Node(0)
    }

    /// How deep the nesting goes: 0 for a scalar.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// What the value is.
    pub fn kind(&self, node: Node) -> Kind {
        self.slot(node).map_or(Kind::Null, |slot| slot.kind)
    }

    /// Where the value stands in the text.
    pub fn span(&self, node: Node) -> Range<usize> {
        self.slot(node).map_or(0..0, |slot| slot.start..slot.end)
    }

    /// The value's bytes.
    pub fn raw(&self, node: Node) -> &[u8] {
        self.bytes.get(self.span(node)).unwrap_or_default()
    }

    /// The elements of an array; of anything else none.
    pub fn items(&self, node: Node) -> Vec<Node> {
        if self.kind(node) == Kind::Array { self.children(node) } else { Vec::new() }
    }

    /// The members of an object, key and value, in the order of the text and each as often as it stands there; of
    /// anything else none.
    pub fn members(&self, node: Node) -> Vec<(Node, Node)> {
        if self.kind(node) != Kind::Object {
            return Vec::new();
        }
        let children = self.children(node);
        children.chunks_exact(2).filter_map(|pair| Some((*pair.first()?, *pair.get(1)?))).collect()
    }

    /// The members of an object as a Go map holds them: of equal keys the last one wins. In byte order of the keys,
    /// as Go writes a map.
    pub fn map(&self, node: Node) -> BTreeMap<String, Node> {
        self.members(node).into_iter().map(|(key, value)| (self.text(key), value)).collect()
    }

    /// The text of a string or key: escapes resolved, and what is not UTF-8 replaced as Go does it. Of anything else
    /// the empty text.
    pub fn text(&self, node: Node) -> String {
        if self.kind(node) == Kind::String { text::unquote(self.raw(node)) } else { String::new() }
    }

    /// The value of a number; `None` for anything else, and for a number that Go refuses as too large for a float64.
    pub fn number(&self, node: Node) -> Option<f64> {
        if self.kind(node) == Kind::Number { number::parse(self.raw(node)) } else { None }
    }

    /// The first number in a value that Go refuses as too large.
    pub fn number_out_of_range(&self, node: Node) -> Option<Node> {
        let after = self.slot(node).map_or(0, |slot| slot.after);
        (node.0..after)
            .map(Node)
            .find(|node| self.kind(*node) == Kind::Number && self.number(*node).is_none())
    }

    /// The value in one spelling: no white space, keys sorted and each once (the last wins), strings and numbers by
    /// value. Two values are equal, as libcni passes them to a plugin, exactly when these bytes are: numbers pass
    /// through a float64 there.
    pub fn canonical(&self, node: Node) -> Vec<u8> {
        canonical::write(self, node)
    }

    fn children(&self, node: Node) -> Vec<Node> {
        let after = self.slot(node).map_or(0, |slot| slot.after);
        let mut children = Vec::new();
        let mut next = node.0 + 1;
        while next < after {
            children.push(Node(next));
            next = self.slots.get(next).map_or(after, |slot| slot.after);
        }
        children
    }

    fn slot(&self, node: Node) -> Option<&Slot> {
        self.slots.get(node.0)
    }
}

/// Writes a text as a JSON string.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    canonical::string(out, text);
}

#[cfg(test)]
mod tests;
