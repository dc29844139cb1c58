//! One plugin's configuration as libcni reads it into its struct.

use crate::json::{Document, Kind, Node};

use super::{Version, Wrong};

/// The fields of the struct that matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plugin {
    /// Its `type`.
    pub(crate) binary: String,
    pub(crate) name: String,
    pub(crate) cni_version: String,
}

/// In which form the configuration reaches the struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Every member in the order of the text.
    AsItStands,
    /// Through a map: of equal keys only the last one, in byte order.
    Rewritten,
}

/// The shape of a field: what Go's decoder takes for it. `null` is taken for each.
enum Shape {
    Text,
    Texts,
    Flags,
    /// Any object; numbers in it must fit a float64.
    Map,
    Struct(&'static [(&'static str, Shape)]),
    Structs(&'static [(&'static str, Shape)]),
}

const TYPE: &str = "type";
const NAME: &str = "name";
const CNI_VERSION: &str = "cniVersion";

const FIELDS_1_1: &[(&str, Shape)] = &[
    (CNI_VERSION, Shape::Text),
    (NAME, Shape::Text),
    (TYPE, Shape::Text),
    ("capabilities", Shape::Flags),
    ("ipam", Shape::Struct(&[("type", Shape::Text)])),
    (
        "dns",
        Shape::Struct(&[
            ("nameservers", Shape::Texts),
            ("domain", Shape::Text),
            ("search", Shape::Texts),
            ("options", Shape::Texts),
        ]),
    ),
    ("prevResult", Shape::Map),
];

/// What libcni 1.3 has beside these.
const FIELDS_1_3: &[(&str, Shape)] = &[(
    "cni.dev/valid-attachments",
    Shape::Structs(&[("containerID", Shape::Text), ("ifname", Shape::Text)]),
)];

pub(super) fn read(
    document: &Document,
    node: Node,
    version: Version,
    reading: Reading,
) -> Result<Plugin, Wrong> {
    let mut plugin = Plugin::default();
    match document.kind(node) {
        Kind::Object => {}
        Kind::Null => return Err(Wrong::at(document, node, "the entry is null and has no \"type\"")),
        _ => return Err(Wrong::kind(document, node, "the entry", "an object")),
    }
    for (key, value) in members(document, node, reading) {
        let more = if version == Version::V1_3_1 { FIELDS_1_3 } else { &[] };
        let Some((field, shape)) = field(FIELDS_1_1, &key).or_else(|| field(more, &key)) else { continue };
        check(document, value, shape, reading).map_err(|wrong| wrong.inside(field))?;
        // A null leaves what an earlier spelling of the same field has set.
        if document.kind(value) == Kind::String {
            match *field {
                TYPE => plugin.binary = document.text(value),
                NAME => plugin.name = document.text(value),
                CNI_VERSION => plugin.cni_version = document.text(value),
                _ => {}
            }
        }
    }
    if plugin.binary.is_empty() {
        return Err(Wrong::at(document, node, "the entry has no \"type\""));
    }
    Ok(plugin)
}

impl Wrong {
    fn inside(mut self, field: &str) -> Self {
        self.reason = format!("{field:?}: {}", self.reason);
        self
    }
}

fn members(document: &Document, node: Node, reading: Reading) -> Vec<(String, Node)> {
    match reading {
        Reading::AsItStands => {
            document.members(node).into_iter().map(|(key, value)| (document.text(key), value)).collect()
        }
        Reading::Rewritten => document.map(node).into_iter().collect(),
    }
}

/// Shapes nest three deep at most, so this recursion ends.
fn check(document: &Document, node: Node, shape: &Shape, reading: Reading) -> Result<(), Wrong> {
    let kind = document.kind(node);
    match shape {
        _ if kind == Kind::Null => Ok(()),
        Shape::Text if kind == Kind::String => Ok(()),
        Shape::Text => Err(Wrong::kind(document, node, "the value", "a string")),
        Shape::Texts if kind == Kind::Array => {
            document.items(node).into_iter().try_for_each(|item| check(document, item, &Shape::Text, reading))
        }
        Shape::Structs(fields) if kind == Kind::Array => {
            let shape = Shape::Struct(fields);
            document.items(node).into_iter().try_for_each(|item| check(document, item, &shape, reading))
        }
        Shape::Texts | Shape::Structs(_) => Err(Wrong::kind(document, node, "the value", "an array")),
        Shape::Flags if kind == Kind::Object => {
            members(document, node, reading).into_iter().try_for_each(|(key, value)| {
                match document.kind(value) {
                    Kind::Bool(_) | Kind::Null => Ok(()),
                    _ => Err(Wrong::kind(document, value, &format!("{key:?}"), "a boolean")),
                }
            })
        }
        Shape::Map if kind == Kind::Object => match document.number_out_of_range(node) {
            Some(number) => Err(Wrong::at(document, number, "the number does not fit a float64")),
            None => Ok(()),
        },
        Shape::Struct(fields) if kind == Kind::Object => members(document, node, reading)
            .into_iter()
            .try_for_each(|(key, value)| match field(fields, &key) {
                Some((name, shape)) => {
                    check(document, value, shape, reading).map_err(|wrong| wrong.inside(name))
                }
                None => Ok(()),
            }),
        Shape::Flags | Shape::Map | Shape::Struct(_) => {
            Err(Wrong::kind(document, node, "the value", "an object"))
        }
    }
}

/// The field that Go's decoder takes a key for: in any case, and with the two other letters that fold to ASCII.
fn field<'a>(fields: &'a [(&'static str, Shape)], key: &str) -> Option<&'a (&'static str, Shape)> {
    let folded: String = key
        .chars()
        .map(|c| match c {
            '\u{17F}' => 's',
            '\u{212A}' => 'k',
            _ => c.to_ascii_lowercase(),
        })
        .collect();
    fields.iter().find(|(name, _)| folded.eq_ignore_ascii_case(name))
}
