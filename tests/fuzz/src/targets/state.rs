//! Our files on the node: every one that can be read means the same after it was written again.

use aether_domain::chain::Healthy;
use aether_domain::format::{Format, Parsed, parse};
use aether_domain::record::{self, Record};
use aether_domain::tombstone::{self, Tombstone};
use aether_domain::upstreams::{self, Upstreams};
use aether_domain::wanted::{self, Marker, Wanted};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn run(bytes: &[u8]) {
    if let Some(record) = kept::<Record>(bytes, record::READER) {
        name(&record.key.file_stem());
        assert!(!record.replaces(&record), "a record replaces itself");
    }
    if let Some(tombstone) = kept::<Tombstone>(bytes, tombstone::READER) {
        name(&tombstone.file_name());
    }
    kept::<Wanted>(bytes, wanted::READER);
    kept::<Marker>(bytes, wanted::READER);
    kept::<Healthy>(bytes, Healthy::READER);
    kept::<Upstreams>(bytes, upstreams::READER);
}

/// Reads, writes and reads again.
fn kept<T>(bytes: &[u8], reader: u32) -> Option<T>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    match parse::<T>(bytes, reader) {
        Parsed::Newer(format) => {
            assert!(!format.readable_by(reader));
            None
        }
        Parsed::Damaged(how) => {
            assert!(!how.is_empty());
            None
        }
        Parsed::Good(value) => {
            let format: Format = serde_json::from_slice(bytes).expect("its format was read");
            assert!(format.readable_by(reader), "a newer file is used");
            let written = serde_json::to_vec(&value).expect("what was read is written");
            assert_eq!(parse::<T>(&written, reader), Parsed::Good(value), "it changes by being written");
            match parse::<T>(&written, reader) {
                Parsed::Good(value) => Some(value),
                Parsed::Newer(_) | Parsed::Damaged(_) => None,
            }
        }
    }
}

/// A file's name is a name: short, not hidden, no path (S01).
fn name(name: &str) {
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-%+=.".contains(c);
    assert!(name.len() <= 200 && !name.starts_with('.') && name.chars().all(safe), "{name:?} (S01)");
}
