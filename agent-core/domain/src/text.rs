//! What several programs put into words alike: an error with its causes, a digest.

use std::error::Error;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// An error and its causes, in one line.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// SHA-256 in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the list")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn an_error_is_said_with_its_causes_in_one_line() {
        let error = Outer(std::io::Error::other("the disk is gone"));
        assert_eq!(error_chain(&error), "cannot read the list: the disk is gone");
    }

    #[test]
    fn a_digest_is_lower_case_hex() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
    }
}
