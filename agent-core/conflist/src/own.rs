//! Our own entry, as the caller wants it in the list.

use crate::json::{Document, SyntaxError};
use crate::libcni;

/// The `type` by which an entry is ours.
pub const TYPE: &str = aether_domain::paths::PLUGIN;

/// An entry of ours: a JSON object whose `type`, as libcni sees it, is [`TYPE`].
///
/// Made from JSON text, whose order of keys is the order in the list: `OwnEntry::parse(value.to_string().as_bytes())`
/// for a `serde_json::Value`, `OwnEntry::parse(list.text(entry))` for the entry that stands in a list. The text's white space does not matter: an edit lays it out like its neighbours.
#[derive(Debug, Clone)]
pub struct OwnEntry {
    document: Document,
    canonical: Vec<u8>,
}

/// Why a text is no entry of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// It is not JSON.
    #[error("our entry is not JSON")]
    Syntax(#[source] SyntaxError),
    /// libcni would refuse it.
    #[error("our entry would be refused by libcni: {reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// Its `type` is another plugin's.
    #[error("our entry has the type {found:?} where {TYPE:?} is expected")]
    Foreign {
        /// The `type` it has.
        found: String,
    },
}

impl OwnEntry {
    /// Reads the entry from JSON text.
    pub fn parse(text: &[u8]) -> Result<Self, EntryError> {
        let document = Document::parse(text).map_err(EntryError::Syntax)?;
        let plugin = libcni::entry(&document, document.root())
            .map_err(|wrong| EntryError::Refused { reason: wrong.reason })?;
        if plugin.binary != TYPE {
            return Err(EntryError::Foreign { found: plugin.binary });
        }
        let canonical = document.canonical(document.root());
        Ok(Self { document, canonical })
    }

    /// The entry's text as it was given.
    pub fn text(&self) -> &[u8] {
        self.document.bytes()
    }

    /// Whether the entry in `list_entry` is this one, as a JSON value: white space, order of keys and spelling of
    /// numbers and strings do not matter; of keys that stand twice the last counts.
    pub fn equals(&self, list_entry: &crate::load::Entry) -> bool {
        self.canonical == list_entry.canonical
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }
}
