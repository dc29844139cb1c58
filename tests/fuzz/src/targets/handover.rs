//! The hand-over protocol's bytes: whatever the pieces they come in, the same messages come out, and each can be said again.

use aether_domain::limits::HANDOVER_MESSAGE_MAX;
use aether_domain::takeover::codec::{CodecError, Decoder, encode};
use aether_domain::takeover::message::{ToOwner, ToStandby};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn run(bytes: &[u8]) {
    let Some((size, stream)) = bytes.split_first() else { return };
    both::<ToOwner>(stream, usize::from(*size).max(1));
    both::<ToStandby>(stream, usize::from(*size).max(1));
}

fn both<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(stream: &[u8], size: usize) {
    let whole = heard::<M>(stream, stream.len().max(1));
    let pieces = heard::<M>(stream, size);
    assert_eq!(whole, pieces, "pieces of {size} say something else");
    for message in whole.0 {
        // What came in one spelling may be longer in ours: escapes, say.
        let Ok(bytes) = encode(&message) else { continue };
        assert!(bytes.len() <= HANDOVER_MESSAGE_MAX + 4);
        assert_eq!(heard::<M>(&bytes, bytes.len()), (vec![message], None), "it is not heard as it is said");
    }
}

/// The messages, and the error that ended it.
fn heard<M: DeserializeOwned>(stream: &[u8], size: usize) -> (Vec<M>, Option<CodecError>) {
    let mut decoder = Decoder::default();
    let mut messages = Vec::new();
    for piece in stream.chunks(size) {
        decoder.push(piece);
        loop {
            match decoder.take::<M>() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}
