//! The two numbers that every file of ours begins with (S02).

use serde::{Deserialize, Serialize};

/// What a file says about its own format. Formats grow by adding keys; a reader ignores keys that it does not know. A
/// change that an older reader must not ignore raises `oldest_reader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Format {
    /// The format's version, as written.
    pub format: u32,
    /// The oldest reader that may use the file: a reader of version `r` leaves the file alone when this is above `r`.
    pub oldest_reader: u32,
}

impl Format {
    /// The first format, which any reader may read.
    pub const V1: Self = Self { format: 1, oldest_reader: 1 };

    /// Whether a reader of version `reader` may use the file.
    pub fn readable_by(self, reader: u32) -> bool {
        self.oldest_reader <= reader
    }
}

/// The outcome of reading one of our files from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    /// It is what it should be.
    Good(T),
    /// A newer program wrote it, and says that this one must not use it. It stays in place, counted.
    Newer(Format),
    /// It is damaged; the text says how.
    Damaged(String),
}

/// Reads one of our JSON files: the format first, so that a newer file is told from a damaged one.
pub fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], reader: u32) -> Parsed<T> {
    if bytes.is_empty() {
        return Parsed::Damaged("the file is empty".to_owned());
    }
    match serde_json::from_slice::<Format>(bytes) {
        Err(error) => Parsed::Damaged(error.to_string()),
        Ok(format) if !format.readable_by(reader) => Parsed::Newer(format),
        Ok(_) => match serde_json::from_slice::<T>(bytes) {
            Ok(value) => Parsed::Good(value),
            Err(error) => Parsed::Damaged(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Thing {
        name: String,
    }

    #[test]
    fn s02_a_newer_file_is_told_from_a_damaged_one() {
        let newer = br#"{"format":9,"oldestReader":2,"shape":"unknown"}"#;
        assert_eq!(parse::<Thing>(newer, 1), Parsed::Newer(Format { format: 9, oldest_reader: 2 }));
        let additive = br#"{"format":9,"oldestReader":1,"name":"x","added":1}"#;
        assert_eq!(parse::<Thing>(additive, 1), Parsed::Good(Thing { name: "x".to_owned() }));
        for damaged in [&b""[..], b"{", b"null", b"[]", br#"{"format":1,"oldestReader":1}"#, b"\0\0\0"] {
            assert!(matches!(parse::<Thing>(damaged, 1), Parsed::Damaged(_)), "{damaged:?}");
        }
    }
}
